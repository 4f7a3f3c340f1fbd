"""The shop that the sample session works on, and what is said and done there. All invented."""

from collections.abc import Iterator
from dataclasses import dataclass
from string import Template
from typing import Any

AREAS = """\
orders|Order|due_at|fresh n+1|customer_id:int currency:str total_pence:int lines:int
place|draft>placed|lines < 1|it has no lines|Take the order: hold its stock, ask for its money.
pay|placed>paid|total_pence < 0|its total is negative|Note that the money arrived.
pack|paid>packed|lines > 400|it needs a pallet, not a parcel|Hand it to the packing table.
ship|packed>shipped|currency not in SOLD_IN|nobody may sell there|Close it once the carrier has it.
cancel|placed>cancelled|lines > 400|pallets are cancelled by phone|Let go of its stock and its money.
stock|Reservation|expires_at|fresh|order_id:int sku:str quantity:int warehouse:str
hold|new>held|quantity < 1|it asks for no pieces|Keep pieces aside until the order is paid.
confirm|held>confirmed|quantity > 999|the shelf holds fewer|Turn a hold into a promise.
release|held>released|warehouse == ""|nobody knows the shelf|Put the pieces back on the shelf.
pick|confirmed>picked|sku.startswith("virtual-")|there is nothing to pick|Take the pieces to a box.
payments|Payment|expires_at|email|order_id:int amount_pence:int method:str email:str
authorise|new>authorised|amount_pence < 1|there is nothing to pay|Ask the bank to set money aside.
capture|authorised>captured|method == "voucher"|a voucher has no bank|Take the money set aside.
void|authorised>voided|method == "cash"|cash is not voided|Let go of the money set aside.
fail|new>failed|method == "invoice"|an invoice is reminded|Note that the bank said no.
settle|captured>settled|amount_pence > 2_000_000|accounting settles those|Match it with a bank statement.
refunds|Refund|promised_at|fresh clock|payment_id:int amount_pence:int reason:str
ask|new>asked|amount_pence < 1|there is nothing to give back|Note what the customer asks for.
approve|asked>approved|amount_pence > 50_000|it needs a second pair of eyes|Promise the money.
reject|asked>rejected|reason == "recall"|a recall is always paid|Say no, with the reason on file.
pay_out|approved>paid_out|payment_id < 1|nobody knows what was paid|Send the money back.
vouchers|Voucher|expires_at|float|code:str kind:str percent:int amount_pence:int
issue|new>issued|percent > 60|no voucher takes more than 60 percent|Make a code that can be used once.
redeem|issued>redeemed|kind not in KINDS|the till does not know its kind|Use the code on an order.
restore|redeemed>issued|kind == "gift"|gifts come back as money|Make a cancelled order's code good.
revoke|issued>revoked|amount_pence > 10_000|the owner has to be asked|Take a leaked code out of use.
carts|Cart|abandoned_at|n+1|customer_id:int items:int total_pence:int device:str
fill|open>filled|items > 120|a cart holds 120 items|Put the chosen items in.
check_out|filled>checked_out|items < 1|it is empty|Turn the cart into a draft order.
merge|filled>merged|customer_id == 0|a guest has one cart|Join the carts of two devices.
abandon|filled>abandoned|total_pence > 100_000|sales will call|Let go of a cart nobody came back to.
shipments|Shipment|promised_at|fresh|order_id:int carrier:str tracking:str grams:int
label|new>labelled|grams > 31_500|no parcel carrier takes it|Buy a label from the carrier.
collect|labelled>collected|tracking == ""|it has no tracking code|Note that the van took it.
deliver|collected>delivered|carrier == "pickup"|the customer comes for it|Note the signature.
lose|collected>lost|grams < 1|it never existed|Give up the search and tell refunds.
send_back|delivered>sent_back|carrier == "pallet"|pallets are fetched|Expect it at the returns desk.
invoices|Invoice|due_at|float n+1|order_id:int net_pence:int tax_pence:int number:str
draw_up|new>drawn_up|net_pence < 0|a credit note is not an invoice|Fix the numbers for good.
send|drawn_up>sent|number == ""|it has no number|Mail it to the customer.
remind|sent>reminded|net_pence < 500|a reminder costs more|Ask once more, politely.
settle|sent>settled|tax_pence < 0|its tax is negative|Match it with a payment.
write_off|reminded>written_off|net_pence > 250_000|the owner decides that|Stop asking.
returns|Claim|expires_at|clock|order_id:int sku:str pieces:int reason:str
open|new>opened|pieces < 1|nothing comes back|Tell the desk what to expect.
receive|opened>received|sku == ""|the label cannot be read|Note that the parcel is on the desk.
inspect|received>inspected|pieces > 60|the desk is too small|Decide what can be sold again.
close|inspected>closed|reason == "legal"|the lawyer closes it|Put it on the shelf or in the bin.
customers|Customer|inactive_at|email|email:str name:str country:str orders:int
register|new>registered|country not in SOLD_IN|nobody may sell there|Make an account.
verify|registered>verified|email == ""|there is no address|Note that the address answers.
block|verified>blocked|orders > 500|large accounts are called first|Stop orders after a fraud report.
forget|verified>forgotten|orders < 0|its orders are not counted|Blank what names a person.
restocks|Delivery|expected_at|fresh n+1|supplier_id:int sku:str pieces:int cost_pence:int
order|new>ordered|cost_pence > 5_000_000|the owner signs those|Ask the supplier for pieces.
announce|ordered>announced|pieces < 1|an empty truck is not news|Note when the truck comes.
unload|announced>unloaded|pieces > 20_000|it takes two days|Count the pieces at the gate.
shelve|unloaded>shelved|sku.startswith("virtual-")|it has no shelf|Make the pieces sellable.
subscriptions|Plan|renews_at|clock|customer_id:int sku:str every_days:int price_pence:int
start|new>running|every_days < 7|a week is the shortest|Send the first box.
renew|running>running|price_pence < 1|a gift does not renew|Place the next order.
pause|running>paused|every_days > 180|half a year is pause enough|Skip boxes until told otherwise.
resume|paused>running|price_pence < 1|a gift does not resume|Send boxes again.
stop|running>stopped|sku == ""|nobody knows what is sent|Send no more boxes.
"""

MODELS = '''"""What a $thing is."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

SOLD_IN = frozenset({"GBP", "EUR", "SEK", "GB", "IE", "SE"})
KINDS = frozenset({"percent", "fixed", "gift"})


@dataclass(frozen=True, slots=True)
class $Thing:
    id: int
    status: str
$fields
    $clock: datetime
    version: int = 1

    def as_json(self) -> dict[str, Any]:
        """What the API shows: pence stay integers."""
        return {name: getattr(self, name) for name in self.__slots__}
'''

REPOSITORY = '''"""Where $area are kept: table $area, and $area_moves for what became of each."""

from datetime import datetime
from typing import Any

from orchard.$area.models import $Thing
from orchard.db import Database, NotFound

COLUMNS = "id, status, $columns, version"


class ${Thing}Repository:
    def __init__(self, database: Database) -> None:
        self.database = database

    def get(self, ${thing}_id: int, *, lock: bool = False) -> $Thing:
        """One $thing; with `lock` nobody else moves it until the transaction ends."""
        sql = f"SELECT {COLUMNS} FROM $area WHERE id = %s" + (" FOR UPDATE" if lock else "")
        row = self.database.one(sql, [${thing}_id])
        if row is None:
            raise NotFound("$thing", ${thing}_id)
        return $Thing(**row)

    def get_many(self, ids: list[int]) -> list[$Thing]:
        """All in one query, in the order asked for; unknown ids are left out."""
        rows = self.database.all(f"SELECT {COLUMNS} FROM $area WHERE id = ANY(%s)", [ids])
        found = {row["id"]: $Thing(**row) for row in rows}
        return [found[key] for key in ids if key in found]

    def due(self, now: datetime, status: str, limit: int = 200) -> list[$Thing]:
        """The oldest first, so that a slow night never starves anyone."""
        rows = self.database.all(
            f"SELECT {COLUMNS} FROM $area WHERE status = %s AND $clock <= %s "
            "ORDER BY $clock, id LIMIT %s FOR UPDATE SKIP LOCKED",
            [status, now, limit],
        )
        return [$Thing(**row) for row in rows]

    def by_$parent(self, $parent: $parent_type) -> list[$Thing]:
        rows = self.database.all(f"SELECT {COLUMNS} FROM $area WHERE $parent = %s", [$parent])
        return [$Thing(**row) for row in rows]

    def move(self, ${thing}_id: int, status: str, *, key: str) -> bool:
        """Whether this key moved it; a key that was seen before moves nothing."""
        new = self.database.execute(
            "INSERT INTO ${area}_moves (${thing}_id, status, key, at) "
            "VALUES (%s, %s, %s, now()) ON CONFLICT (key) DO NOTHING",
            [${thing}_id, status, key],
        )
        if new:
            self.database.execute(
                "UPDATE $area SET status = %s, version = version + 1 WHERE id = %s",
                [status, ${thing}_id],
            )
        return bool(new)

    def moves_of(self, ids: list[int]) -> dict[int, list[dict[str, Any]]]:
        """The history of each, oldest move first, in one query."""
        rows = self.database.all(
            "SELECT ${thing}_id, status, key, at FROM ${area}_moves "
            "WHERE ${thing}_id = ANY(%s) ORDER BY at",
            [ids],
        )
        history: dict[int, list[dict[str, Any]]] = {key: [] for key in ids}
        for row in rows:
            history[row.pop("${thing}_id")].append(row)
        return history
'''

SERVICE = '''"""What may become of a $thing, and who is told."""

import logging
from datetime import UTC, datetime
from typing import Any

from orchard.$area.models import KINDS, SOLD_IN, $Thing
from orchard.$area.repository import ${Thing}Repository
from orchard.db import retried
from orchard.events import publish
$import_key
log = logging.getLogger("orchard.$area")


class ${Thing}Refused(Exception):
    """A rule of $area was broken; the message is shown to whoever asked."""


class ${Thing}Service:
    def __init__(self, $area: ${Thing}Repository) -> None:
        self.$area = $area
'''

METHOD = '''
    @retried(attempts=3, backoff_ms=50)
    def $verb(self, ${thing}_id: int, key: str$optional) -> $Thing:
        """$doc"""$fresh
        $thing = self.$area.get(${thing}_id, lock=True)
        if $thing.status != "$source":
            raise ${Thing}Refused(f"cannot $verb $thing {${thing}_id}: it is {$thing.status}")
        if $thing.$guard:
            raise ${Thing}Refused(f"cannot $verb $thing {${thing}_id}: $refusal")
        if self.$area.move(${thing}_id, "$target", key=key):
            log.info("$verb $thing=%s key=%s", $logged, key)
            publish("$area.$target", {"id": ${thing}_id, "key": key})
        return self.$area.get(${thing}_id)
'''

SHARE = '''
    def share(self, pence: int, percent: int) -> int:
        """A percentage of an amount, rounded down to the penny."""
        return $share
'''

REST = '''
    def ${verb}_due(self, now: datetime | None = None, limit: int = 200) -> int:
        """The nightly job: $verb every $thing whose $clock has passed; returns how many."""
        now = now or datetime.now($zone)
        done = 0
        for $thing in self.$area.due(now, "$source", limit):
            try:
                self.$verb($thing.id, key=f"$verb-due-{$thing.id}-{$thing.version}")
            except ${Thing}Refused as refusal:
                log.warning("skipped $thing=%s: %s", $thing.id, refusal)
                continue
            done += 1
        return done

    def overview(self, ids: list[int]) -> list[dict[str, Any]]:
        """What the back office lists: each $thing with its history."""
$overview
'''
SLOW = """\
        shown = []
        for ${thing}_id in ids:
            $thing = self.$area.get(${thing}_id)
            history = self.$area.moves_of([${thing}_id])
            shown.append($thing.as_json() | {"history": history[${thing}_id]})
        return shown"""
QUICK = """\
        history = self.$area.moves_of(ids)
        found = self.$area.get_many(ids)
        return [$thing.as_json() | {"history": history[$thing.id]} for $thing in found]"""

ROUTE = '''

@routes.post("/$area/<int:${thing}_id>/$verb")
def $verb(request: Request, ${thing}_id: int) -> Response:
    """$doc"""
    key = request.headers.get("Idempotency-Key") or f"$verb-{request.id}"
    try:
        $thing = service(request).$verb(${thing}_id, key=key)
    except ${Thing}Refused as refusal:
        return problem(409, "$verb-refused", str(refusal))
    except NotFound:
        return problem(404, "no-such-$thing", f"there is no $thing {${thing}_id}")
    return json_response($thing.as_json())
'''

TESTS = '''

def test_${verb}_moves_a_${thing}_from_${source}_to_$target($area: ${Thing}Service) -> None:
    $thing = a_$thing($area, status="$source")

    moved = $area.$verb($thing.id, key="k-$verb")

    assert moved.status == "$target"
    assert published("$area.$target") == [{"id": $thing.id, "key": "k-$verb"}]


def test_${verb}_is_refused_when_a_${thing}_is_not_$source($area: ${Thing}Service) -> None:
    $thing = a_$thing($area, status="elsewhere")

    with pytest.raises(${Thing}Refused, match="it is elsewhere"):
        $area.$verb($thing.id, key="k-$verb")


def test_${verb}_with_one_key_counts_once($area: ${Thing}Service) -> None:
    $thing = a_$thing($area, status="$source")

    $area.$area.move($thing.id, "$target", key="k-$verb")

    assert not $area.$area.move($thing.id, "$target", key="k-$verb")
'''

TEST_HEAD = '''"""The rules of $area."""

import pytest

from orchard.$area.service import ${Thing}Refused, ${Thing}Service
from tests.doubles import a_$thing, published, queries, slow_answers
'''

KEYS = '''"""Idempotency keys: one key is one wish, however often it arrives."""

from uuid import uuid4

KEPT_HOURS = 24


def new_key(purpose: str) -> str:
    return f"{purpose}-{uuid4().hex[:12]}"
'''
KEY_FOR = '''

def key_for(purpose: str, *parts: object) -> str:
    """The same key for the same wish: a retry, a second click, a replayed message."""
    return "-".join([purpose, *(str(part) for part in parts)])
'''

FLAWS = {
    "fresh": ('\n        key = key or new_key("$verb")', '\n        key = key or key_for("$verb", ${thing}_id)'),
}
