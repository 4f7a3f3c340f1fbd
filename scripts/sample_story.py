"""Holds the invented shop of the sample session and its dialogue, as templates."""

# area|Thing|clock|flaws|columns, then a line for each verb: verb|from>to|guard|refusal|what it does
AREAS_TEXT = """\
orders|Order|due_at|fresh n+1|customer_id:int currency:str total_pence:int lines:int
place|draft>placed|lines < 1|it has no lines|Take the order: hold its stock, ask for its money.
pay|placed>paid|total_pence < 0|its total is negative|Note that the money arrived.
pack|paid>packed|lines > 400|it needs a pallet, not a parcel|Hand it to the packing table.
ship|packed>shipped|currency not in SOLD_IN|nobody may sell there|Close it once the carrier has it.
cancel|placed>cancelled|lines > 400|pallets are cancelled by phone|Let go of its stock and money.
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
settle|captured>settled|amount_pence > 2_000_000|accounting settles those|Match a bank statement.
refunds|Refund|promised_at|fresh clock|payment_id:int amount_pence:int reason:str
ask|new>asked|amount_pence < 1|there is nothing to give back|Note what the customer asks for.
approve|asked>approved|amount_pence > 50_000|it needs a second pair of eyes|Promise the money.
reject|asked>rejected|reason == "recall"|a recall is always paid|Say no, with the reason on file.
pay_out|approved>paid_out|payment_id < 1|nobody knows what was paid|Send the money back.
vouchers|Voucher|expires_at|float|code:str kind:str percent:int amount_pence:int
issue|new>issued|percent > 60|no voucher takes more than 60 percent|Make a code for one use.
redeem|issued>redeemed|kind not in KINDS|the till does not know its kind|Use the code on an order.
restore|redeemed>issued|kind == "gift"|gifts come back as money|Make a cancelled order's code good.
revoke|issued>revoked|amount_pence > 10_000|the owner has to be asked|Take a leaked code out of use.
carts|Cart|abandoned_at|n+1|customer_id:int items:int total_pence:int device:str
fill|open>filled|items > 120|a cart holds 120 items|Put the chosen items in.
check_out|filled>checked_out|items < 1|it is empty|Turn the cart into a draft order.
merge|filled>merged|customer_id == 0|a guest has one cart|Join the carts of two devices.
abandon|filled>abandoned|total_pence > 100_000|sales will call|Let go of a forgotten cart.
shipments|Shipment|promised_at|fresh|order_id:int carrier:str tracking:str grams:int
label|new>labelled|grams > 31_500|no parcel carrier takes it|Buy a label from the carrier.
collect|labelled>collected|tracking == ""|it has no tracking code|Note that the van took it.
deliver|collected>delivered|carrier == "pickup"|the customer comes for it|Note the signature.
lose|collected>lost|grams < 1|it never existed|Give up the search and tell refunds.
send_back|delivered>sent_back|carrier == "pallet"|pallets are fetched|Expect it at the desk.
invoices|Invoice|due_at|float n+1|order_id:int net_pence:int tax_pence:int number:str
draw_up|new>drawn_up|net_pence < 0|a credit note is not an invoice|Fix the numbers for good.
send|drawn_up>sent|number == ""|it has no number|Mail it to the customer.
remind|sent>reminded|net_pence < 500|a reminder costs more|Ask once more, politely.
balance|sent>balanced|tax_pence < 0|its tax is negative|Match it with a payment.
write_off|reminded>written_off|net_pence > 250_000|the owner decides that|Stop asking.
customers|Customer|inactive_at|email clock|email:str country:str orders:int kind:str
register|new>registered|country not in SOLD_IN|nobody may sell there|Make an account.
verify|registered>verified|email == ""|there is no address|Note that the address answers.
block|verified>blocked|orders > 500|large accounts are called|Stop orders after a fraud report.
forget|verified>forgotten|orders < 0|its orders are not counted|Blank what names a person.
"""

REPOSITORY = '''"""Keeps $area, and in ${area}_moves what became of each."""

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
        sql = f"SELECT {COLUMNS} FROM $area WHERE status = %s AND $clock <= %s"
        sql += " ORDER BY $clock, id LIMIT %s FOR UPDATE SKIP LOCKED"
        return [$Thing(**row) for row in self.database.all(sql, [status, now, limit])]

    def move(self, ${thing}_id: int, status: str, *, key: str) -> bool:
        """Whether this key moved it; a key that was seen before moves nothing."""
        sql = "INSERT INTO ${area}_moves VALUES (%s, %s, %s, now()) ON CONFLICT (key) DO NOTHING"
        new = self.database.execute(sql, [${thing}_id, status, key])
        if new:
            sql = "UPDATE $area SET status = %s, version = version + 1 WHERE id = %s"
            self.database.execute(sql, [status, ${thing}_id])
        return bool(new)

    def moves_of(self, ids: list[int]) -> dict[int, list[dict[str, Any]]]:
        """The history of each, oldest move first, in one query."""
        sql = "SELECT * FROM ${area}_moves WHERE ${thing}_id = ANY(%s) ORDER BY at"
        history: dict[int, list[dict[str, Any]]] = {key: [] for key in ids}
        for row in self.database.all(sql, [ids]):
            history[row.pop("${thing}_id")].append(row)
        return history
'''

SERVICE = '''"""What may become of $a $thing, and who is told."""

import logging
from datetime import UTC, datetime
from typing import Any

from orchard import keys
from orchard.$area.models import KINDS, SOLD_IN, $Thing
from orchard.$area.repository import ${Thing}Repository
from orchard.db import retried
from orchard.events import publish

log = logging.getLogger("orchard.$area")


class ${Thing}Refused(Exception):
    """A rule of $area was broken; the message is shown to whoever asked."""


class ${Thing}Service:
    def __init__(self, $area: ${Thing}Repository) -> None:
        self.$area = $area
'''

METHOD = '''
    @retried(attempts=3, backoff_ms=50)
    def $verb(self, ${thing}_id: int, key: str | None = None) -> $Thing:
        """$doc"""
        key = key or keys.key_for("$verb", ${thing}_id)
        $thing = self.$area.get(${thing}_id, lock=True)
        if $thing.status != "$source":
            raise ${Thing}Refused(f"cannot $verb $thing {${thing}_id}: it is {$thing.status}")
        if $thing.$guard:
            raise ${Thing}Refused(f"cannot $verb $thing {${thing}_id}: $refusal")
        if self.$area.move(${thing}_id, "$target", key=key):
            log.info("$verb $thing=%s key=%s", ${thing}_id, key)
            publish("$area.$target", {"id": ${thing}_id, "key": key})
        return self.$area.get(${thing}_id)
'''

REST = '''
    def ${verb}_due(self, now: datetime | None = None, limit: int = 200) -> int:
        """The nightly job: $verb every $thing whose $clock has passed; returns how many."""
        now = now or datetime.now(UTC)
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
        found = self.$area.get_many(ids)
        moves = self.$area.moves_of(ids)
        return [$thing.as_json() | {"history": moves[$thing.id]} for $thing in found]
'''

SHARE_METHOD = '''
    def share(self, pence: int, percent: int) -> int:
        """A percentage of an amount, rounded down to the penny."""
        return pence * percent // 100
'''

TEST_HEAD = '''"""The rules of $area."""

import pytest

from orchard.$area.service import ${Thing}Refused, ${Thing}Service
from tests.doubles import ${a}_$thing, published
'''

TESTS = """

def test_${verb}_moves_${a}_${thing}_from_${source}_to_$target($area: ${Thing}Service) -> None:
    $thing = ${a}_$thing($area, status="$source")

    moved = $area.$verb($thing.id, key="k-$verb")

    assert moved.status == "$target"
    assert published("$area.$target") == [{"id": $thing.id, "key": "k-$verb"}]


def test_${verb}_is_refused_when_${a}_${thing}_is_not_$source($area: ${Thing}Service) -> None:
    $thing = ${a}_$thing($area, status="elsewhere")

    with pytest.raises(${Thing}Refused, match="it is elsewhere"):
        $area.$verb($thing.id, key="k-$verb")


def test_${verb}_with_one_key_counts_once($area: ${Thing}Service) -> None:
    $thing = ${a}_$thing($area, status="$source")

    $area.$area.move($thing.id, "$target", key="k-$verb")

    assert not $area.$area.move($thing.id, "$target", key="k-$verb")
"""

# flaw|current code|correct code|the test that proves the fix|what it does|what holds
FLAWS = """\
fresh|keys.new_key("$verb")|keys.key_for("$verb", ${thing}_id)|a_retried_${verb}_counts_once\
|$area.$verb($thing.id, slow=1)|len($area.$area.moves_of([$thing.id])[$thing.id]) == 1
n+1|[self.$area.get(one) for one in ids]|self.$area.get_many(ids)|an_overview_takes_two_queries\
|$area.overview([$thing.id] * 40)|len(queries) == 2
clock|datetime.now()|datetime.now(UTC)|${verb}_due_reads_the_clock_in_utc\
|monkeypatch.setenv("TZ", "Pacific/Auckland")|$area.${verb}_due() == 1
float|int(pence * (percent / 100))|pence * percent // 100|a_share_is_rounded_down\
|shares = [$area.share(pence, 29) for pence in (100, 2_900)]|shares == [29, 841]
email|key=%s", $thing.email, key)|key=%s", ${thing}_id, key)|${verb}_logs_no_address\
|$area.$verb($thing.id, key="k-1")|$thing.email not in caplog.text
"""

PROOF = """

def test_$name($area: ${Thing}Service, caplog, monkeypatch, queries) -> None:
    $thing = ${a}_$thing($area, status="$source")

    $act

    assert $fact"""

OTHERS = {
    "orchard/keys.py": '''"""Idempotency keys: one key is one wish, however often it arrives."""

from uuid import uuid4


def new_key(purpose: str) -> str:
    """A key for a wish that nothing identifies: never call it inside what may be retried."""
    return f"{purpose}-{uuid4().hex[:12]}"


def key_for(purpose: str, *parts: object) -> str:
    """The same key for the same wish: a retry, a second click, a replayed message."""
    return "-".join([purpose, *(str(part) for part in parts)])
''',
    "orchard/flags.py": 'FLAGS = {\n    "gift_wrap": True,\n    "guest_checkout": True,\n}\n',
    "pyproject.toml": '[project]\nname = "orchard"\nversion = "4.6.3"\n',
    "CHANGELOG.md": "# Changelog\n\n## 4.6.3\n\n- Services retry when an answer is slow.\n",
}

# `&` is the user and `@` the agent, whose thoughts are `?` and whose tool calls are `:`. Below a
# call comes its input (`<` old, `>` new, `+` text, `x` `>` `-` items) or result (`|`, `!` failed).
STORY = r'''
& Morning. Since Thursday's deploy (4.6.3) some orders hold their stock twice; support files it as
ORCH-412. The code is in orchard/, yesterday's logs are in logs/. Find out why before you change
anything.

House rules, for all you do here: never touch the migrations folder, it is Priya's. Use tabs in
ops/, four spaces everywhere else. Money is integer pence, never a float. No new dependencies. A
commit message starts with its ticket.
@ I look at how stock is held first, and change nothing.
? Held twice and not ordered twice: something between the order and the shelf repeats itself, and a
? retry is the first suspect. I read the service, then what 4.6.3 changed.
: Todo
x Read the house rules
> Find where a hold can happen twice (ORCH-412)
- Confirm it in the logs
- Count the orders it hit
: Read orchard/stock/service.py
: Read orchard/stock/README.md
: Bash git log --oneline -n 5 # What the deploy brought
| 9c41f0e (HEAD -> main, tag: v4.6.3) ORCH-401: 4.6.3
| b7e02c9 ORCH-399: retry every service call when an answer is slow
| 41aa6d3 ORCH-395: returns desk prints its own labels
| f02d8b7 ORCH-390: Swedish prices without a decimal point
| 6e5517c (tag: v4.6.2) ORCH-388: 4.6.2
@ Stock has no README. The deploy brought `@retried` to every service (b7e02c9), so keys come next.
? b7e02c9 put @retried around the whole method. If the key is made inside the method, every attempt
? has a key of its own, and ON CONFLICT (key) never sees a conflict.
: Read orchard/keys.py
: Grep new_key orchard
: Bash tail -n 240 logs/stock.log # The end of the stock log
@ `new_key` is called inside the retried method. Now both ends of one order.
: Read orchard/stock/repository.py
: Read orchard/orders/service.py
: Bash tail -n 230 logs/orders.log # The end of the order log
: Bash psql shop -c "SELECT count(*), sum(pieces), sum(pence) FROM double_holds" # Count them
|  count | sum |  sum
| -------+-----+--------
|     37 |  61 | 191240
| (1 row)
@ Found it. `hold` makes its key with `new_key` inside the method that `@retried` repeats. When an
answer takes more than 2000 ms the first attempt is committed all the same, the second comes with a
fresh key, and `ON CONFLICT (key)` lets it through.

- since 5 March: 37 orders, 61 pieces, 191240 pence of stock blocked
- `orders.place` has the same line; so have refunds and shipments
- `key_for` in orchard/keys.py makes a key that survives a retry

I propose `key_for` in stock and orders now, and the other two as a change of their own. Shall I?
& Yes: stock and orders now, each with a test. Keep three attempts and 50 ms backoff, that is agreed
with ops. And do not raise the 2000 ms timeout to hide it.
@ Stock first.
: Edit orchard/stock/service.py
<         key = keys.new_key("hold")
>         key = keys.key_for("hold", reservation_id)
: Read tests/test_stock.py
@ That is not how the line reads.
? I typed that line from memory. Look at it, then edit.
: Grep new_key orchard/stock
@
: Mend stock fresh
@
: Bash pytest -v tests/test_stock.py # Run the stock tests
! test_a_retried_hold_counts_once: assert 2 == 1
@ The double of a reservation moves once itself, when it takes pieces off the shelf. I count holds.
: Edit tests/test_stock.py
<     assert len(stock.stock.moves_of([reservation.id])[reservation.id]) == 1
>     assert str(stock.stock.moves_of([reservation.id])).count("'held'") == 1
: Bash pytest -v tests/test_stock.py # Run the stock tests again
@ Green. Now orders, the same way.
: Read tests/test_orders.py
: Read orchard/orders/service.py
: Read orchard/orders/repository.py
@
: Mend orders fresh
@
: Bash pytest -v # Run the whole suite
: Read orchard/stock/service.py 1 44
@ ORCH-412 is fixed in stock and orders: a retry carries the key of its first attempt. Three
attempts, 50 ms backoff and the 2000 ms timeout are as they were. Refunds and shipments still have
the flaw.
& Next, a feature, ORCH-398: a customer may use two vouchers on one order. At most two. Percent
first, then fixed, never below zero. Behind a flag `voucher_stacking` that is off by default;
marketing turns it on after the 24th.
@ I read what vouchers do today.
: Read orchard/vouchers/service.py
: Read tests/test_vouchers.py
: Read orchard/flags.py
: Grep percent orchard
@ A pure function is enough; the service calls it when the flag is on.
? Order matters: 20 percent off 5000 is 4000, minus 500 is 3500; the other way round it is 3600. The
? user said percent first. Whole pence, so // and no float.
: Write orchard/vouchers/stacking.py
+ """Two vouchers on one order: percent first, then fixed."""
+
+ from orchard.vouchers.models import Voucher
+
+ MOST = 2
+
+
+ def stacked(pence: int, vouchers: list[Voucher]) -> int:
+     """What is left to pay, in whole pence."""
+     for voucher in sorted(vouchers[:MOST], key=lambda voucher: voucher.kind != "percent"):
+         if voucher.kind == "percent":
+             pence -= pence * voucher.percent // 100
+         else:
+             pence -= voucher.amount_pence
+     return pence
: Write tests/test_stacking.py
+ """Two vouchers on one order."""
+
+ from orchard.vouchers.stacking import stacked
+ from tests.doubles import fixed, percent
+
+
+ def test_percent_comes_before_fixed() -> None:
+     assert stacked(5_000, [fixed(500), percent(20)]) == 3_500
+
+
+ def test_the_total_never_goes_below_zero() -> None:
+     assert stacked(250, [fixed(500)]) == 0
: Edit orchard/flags.py
< FLAGS = {
> FLAGS = {
>     "voucher_stacking": False,
@
: Bash pytest -v tests/test_stacking.py tests/test_vouchers.py # Run the voucher tests
! test_the_total_never_goes_below_zero: assert -250 == 0
@ The floor is missing.
: Edit orchard/vouchers/stacking.py
<     return pence
>     return max(pence, 0)
: Bash pytest -v tests/test_stacking.py tests/test_vouchers.py # Run them again
@ Both green; the whole suite once.
: Bash pytest -v # The whole suite
@ Stacking is in orchard/vouchers/stacking.py, off by default: two vouchers at most, percent before
fixed, never below zero; 5000 pence with 20 % and 500 pence gives 3500. `VoucherService.share` still
counts with a float; I left that alone.
& Good. Keep the float for the audit I want later. Commit: two commits, one for each ticket.
@
: Bash git status --short # What changed
: Bash git diff # Read it before it is committed
@
: Bash git commit -m "Hold stock once when an answer is slow" orchard/stock orchard/orders # Fix
! commit-msg hook: "Hold stock once" does not start with a ticket (ORCH-1: ...)
@ The hook wants what you said: the ticket first.
: Bash git commit -m "ORCH-412: hold stock once" */*stock* */*stock*/* */*orders* */*orders*/* # Fix
| [main 5d1c0fa] ORCH-412: hold stock once
: Bash git add -A && git commit -m "ORCH-398: two vouchers on one order, behind a flag" # Feature
| [main e93b7d2] ORCH-398: two vouchers on one order, behind a flag
@ Two commits: 5d1c0fa (ORCH-412) and e93b7d2 (ORCH-398). Nothing is pushed.
& CI fails about one run in twenty, only in the evening, always in tests/test_refunds.py. Do not
mark it flaky. Find it.
@ In the evening smells of a clock.
: Read orchard/refunds/service.py
: Read tests/test_refunds.py
: Grep datetime.now( orchard
: Bash tail -n 220 logs/refunds.log # What the nightly job says
@ `ask_due` reads the clock without a zone; customers does too. I mend refunds here, and prove it in
a zone far from UTC.
? Due times are kept in UTC. datetime.now() without a zone is the runner's local time. After 23:00
? the two disagree about the day, and nothing is due.
: Mend refunds clock
@
: Bash for i in $(seq 20); do pytest tests/test_refunds.py >/dev/null && echo ok; done|uniq -c # 20x
|      20 ok
: Bash pytest -v tests/test_refunds.py # And once in full
: Bash pytest -v # The whole suite
@ Twenty runs, twenty green. The cause was local time against UTC in `ask_due`, not the test.
& Finance asks what the double holds cost us and wants a script that gives the money back. Write it
to ops/refund_doubles.sh, but do not run it: I run it myself on Monday.
@
: Bash psql shop -c "SELECT * FROM doubles_by_day" # What it cost, by day
|     day     | orders | pieces | pence  | paid_twice | pence_twice
| ------------+--------+--------+--------+------------+-------------
|  2026-03-05 |      6 |      9 |  27410 |          1 |        4210
|  2026-03-06 |      8 |     12 |  40155 |          3 |       15400
|  2026-03-07 |     14 |     26 |  78890 |          5 |       26890
|  2026-03-08 |      7 |     11 |  33585 |          2 |       11810
|  2026-03-09 |      2 |      3 |  11200 |          0 |           0
| (5 rows)
: Read orchard/payments/service.py
: Read orchard/payments/repository.py
: Bash tail -n 230 logs/payments.log # Whether a payment was taken twice
@
: Write ops/refund_doubles.sh
+ #!/bin/sh
+ # Refunds the payments that ORCH-412 took twice. A dry run, unless called with --pay.
+ set -eu
+ psql shop -At -c "SELECT payment_id, pence FROM paid_twice" | while IFS='|' read -r id pence; do
+ 	if [ "${1:-}" = --pay ]; then
+ 		curl -fsS -X POST "$SHOP/refunds/$id/ask" -H "Idempotency-Key: orch-412-$id"
+ 	else
+ 		echo "would refund $pence pence of payment $id"
+ 	fi
+ done
: Bash sh -n ops/refund_doubles.sh && grep -c "$(printf '\t')" ops/refund_doubles.sh # Syntax, tabs
| 5
@ 37 orders in five days, 191240 pence in all; the worst day was Saturday the 7th with 14. 11
customers paid twice, 58310 pence; for the rest only stock was blocked. The script refunds those 11,
is a dry run unless called with --pay, is indented with tabs, and was not run.
& Support has a customer with two parcels for order 71204. Find out why, then give me one paragraph
for the customer, without names of our services.
@ Two parcels for one order: a label bought twice?
: Read orchard/shipments/service.py
: Read orchard/shipments/repository.py
: Read tests/test_shipments.py
: Bash tail -n 230 logs/shipments.log # The carrier's side
@ Attempts 1 and 2 have two keys there, as for stock. Now this order.
: Bash psql shop -c "SELECT id, carrier, tracking FROM shipments WHERE order_id = 71204" # Labels
|   id   | carrier |   tracking
| -------+---------+--------------
|  72915 | dx      | DX-88213-GB
|  72916 | dx      | DX-88214-GB
| (2 rows)
@ For the customer: "On 7 March our carrier answered late, so we asked for your label twice. You
paid once. Parcel DX-88213-GB is yours; you may send DX-88214-GB back at our cost." For us: `label`
has the flaw of ORCH-412, and a second label costs 389 pence.
& Change one thing, for this one and all others: second parcels may be kept, nobody sends one back.
@ "... Parcel DX-88213-GB is yours, and you may keep DX-88214-GB as well." From now on: kept.
& The back office says the order list takes seconds. ORCH-420. Budget: p95 of 180 ms at 40 requests
a second. Measure first. You may change queries, not the schema.
@
: Bash python ops/load.py --rate 40 --seconds 60 # Load test at 40/s
: Plan orders
: Bash tail -n 200 logs/slow-query.log # Slow queries
@ A list of 200 orders sends 201 queries: `overview` asks for every order on its
own, though `get_many` takes a list.
? An index on (status, due_at) would help the nightly job, but that is a migration, and migrations
? are Priya's. So: two queries instead of 201, and a proposal for her.
: Mend orders n+1
@
: Bash pytest -v tests/test_orders.py # Run the order tests
: Bash python ops/load.py --rate 40 --seconds 60 # Load test again
: Write docs/proposals/orders-due-index.md
+ # Proposal for Priya: an index on orders (status, due_at)
+
+ The nightly job reads orders by status and due_at, and has no index for it. Today it scans
+ 1.48 million rows for 200. An index of about 44 MB would make that 200 rows.
+ Nothing here was changed: migrations are yours.
@ The order list is inside 180 ms: two queries instead of 201. An index on orders (status, due_at)
would help the nightly job; as that is a migration, docs/proposals/orders-due-index.md asks Priya.
& Commit that. Then think aloud, no code: what would it take to log who changed an order? Customers
or invoices may have something.
@
: Bash git add -A && git commit -m "ORCH-420: list orders with two queries" # Commit
| [main 0b64e1c] ORCH-420: list orders with two queries
: Read orchard/customers/service.py
: Read orchard/invoices/service.py
: Grep publish( orchard
@ Neither says who. What do they keep?
: Read orchard/customers/repository.py
: Read orchard/invoices/repository.py
: Read tests/test_invoices.py
@ Neither has it. Each move has a row in `<area>_moves` with its key and time; what is missing is
who.

- a column `by` on each moves table: one migration (Priya), one argument through nine services
- the actor inside the event that `publish` sends: no migration, but events are kept 30 days only

I would take the column. Seen in passing: customers logs an e-mail address on registration, which
the privacy page says we never do.
& The column, then, but after the release; put it on the list. Now prepare 4.7.0: version,
changelog. Do not tag and do not push. The release is on Tuesday the 17th, 10:00 UTC.
@
: Read pyproject.toml
: Read CHANGELOG.md
@
: Edit pyproject.toml
< version = "4.6.3"
> version = "4.7.0"
: Edit CHANGELOG.md
< # Changelog
> # Changelog
>
> ## 4.7.0
>
> - ORCH-412: a slow answer no longer holds stock or places an order twice.
> - ORCH-398: two vouchers on one order (flag `voucher_stacking`, off).
> - ORCH-420: the order list takes two queries.
: Bash pytest -v # The whole suite
: Todo
x ORCH-412: stock and orders
x ORCH-398: voucher stacking, flag off
x ORCH-420: order list
x Prepare 4.7.0
- Audit of the other services
- After the release: column `by` on the moves tables (Priya)
@ 4.7.0 is prepared: version and changelog are written, the suite is green. Not committed, not
tagged.
& Last big thing, ORCH-425: an audit of the other seven services. Look for keys made inside a retry,
one query per row, local time, floats in money, addresses in logs. Mend what you find, with a test
each, and run the whole suite after each service. I am out for two hours: do not stop to ask, keep
open questions for the end. One exception: leave the tax numbers of invoices alone, legal is on it.
@ One service at a time: read, mend, prove, run.
? Seven services, one at a time: service, repository and tests together, then what its nightly query
? costs and what its log says; mend, prove, run. Open questions go to the end.
: Todo
x Prepare 4.7.0
> ORCH-425: audit of seven services
- Whole suite after each
- Open questions for the end
$audit
@ The audit is through: seven services, nine flaws, nine tests, and the suite is green.

- fresh keys: `refunds.ask`, `shipments.label`
- one query per row: `carts.overview`, `invoices.overview`
- floats: `vouchers.share`, `invoices.share` (the code only; no tax number was changed)
- local time: `customers.register_due`
- addresses in logs: `payments.authorise`, `customers.register`

Open: (1) 3 of the 11 double payments went through `refunds.ask`, so your script may pay them again;
(2) the carrier should be asked for 389 pence for each second label; (3) old logs hold addresses.
& Back. For (1): take those three out of the script, payments 70412, 70655 and 71003. (2) I ask the
carrier. (3) Wait for legal. Then load test once more and tell me what is left before Tuesday.
@
: Read ops/refund_doubles.sh
: Bash python ops/load.py --rate 40 --seconds 60 # Load test at 40/s
: Bash git status --short # What is not committed
@
: Edit ops/refund_doubles.sh
< FROM paid_twice"
> FROM paid_twice WHERE payment_id NOT IN (70412, 70655, 71003)"
: Bash sh -n ops/refund_doubles.sh && sh ops/refund_doubles.sh | wc -l # Dry run: payments left
| 8
: Todo
x ORCH-425: audit of seven services
x Take 70412, 70655 and 71003 out of ops/refund_doubles.sh
> Commit the audit as ORCH-425
- Commit 4.7.0; no tag, no push
- Monday: the user runs ops/refund_doubles.sh --pay
- After the release: column `by` on the moves tables (Priya)
- Old logs hold addresses: waits for legal
@ The script leaves out the three; its dry run lists 8 payments. Every list is inside 180 ms now.
Left before Tuesday: commit the audit, then 4.7.0. One question before I do: one commit for the
audit as ORCH-425, or one for each service, so that shipments can be reverted alone?
'''

# The audit's findings: area | its flaws | the agent's thought | its message.
FINDINGS = """\
payments|email|Money leaves here, so keys first: all are key_for. But the log line takes an address.
|`authorise` logs the payer's address. Keys and clock are right.
refunds|fresh|The clock was mended with the flaky test; the key was left out of ORCH-412 on purpose.
|`ask` makes a fresh key at each attempt; 3 of the 11 double payments went through here.
vouchers|float|The user kept this float for the audit: 29 percent of 100 is 28 with it, 29 with //.
|`share` counts with a float and loses a penny on 17 of 59 round amounts.
carts|n+1|A list of 50 carts sends 51 queries, and the mobile app asks for it on every start.
|`overview` asks once per row. Everything else is in order.
shipments|fresh|A label is bought from the carrier: a fresh key buys two of them, 389 pence each.
|`label` has the flaw of ORCH-412. The carrier's bill for March should show it.
invoices|float n+1|Two flaws at once. The tax numbers stay as they are; legal is on it.
|`share` uses a float and `overview` asks per row. I touch no tax number.
customers|email clock|Seen on the way: register logs an address. Its job reads local time, too.
|`register` logs the address and `register_due` reads local time.
"""

AUDIT = """
@ Next are $area.
? $thought
: Read orchard/$area/service.py
: Read orchard/$area/repository.py
: Read tests/test_$area.py
@ $finding
: Grep ${Thing}Service .
: Plan $area
: Bash tail -n 90 logs/$area.log # Recent lines of $area
$mends
@
: Bash pytest -v tests/test_$area.py # Run the $area tests
$mishap
@ Done with $area.
: Bash pytest -v # The whole suite
"""

# Problems on the way, and their fixes.
MISHAPS = {
    "shipments": """\
: Bash ruff check orchard tests # Lint
| All checks passed!
@ The whole suite takes a while; four at a time.
: Bash python -m pytest -v -n 4 # The whole suite
! pytest: error: unrecognized arguments: -n 4
@ No xdist here, and no new dependencies: one process, then.
: Bash git status --short # What the audit changed so far""",
    "carts": """\
! test_an_overview_takes_two_queries: assert 3 == 2
@ The third query is the double's own: it reads the customer of the cart. I do not count it.
: Edit tests/test_carts.py
<     assert len(queries) == 2
>     assert len([query for query in queries if "carts" in query]) == 2
: Bash pytest -v tests/test_carts.py # Run them again""",
    "customers": """\
@ The log line of `forget` may have it, too.
: Edit orchard/customers/service.py
< log.info("forget customer=%s key=%s", customer.email, key)
> log.info("forget customer=%s key=%s", customer_id, key)
@ It does not: it logs the id. Nothing to do there.
: Grep log.info orchard/customers""",
}

QUERY = "SELECT * FROM $area WHERE status = '$source' ORDER BY $clock LIMIT 200"
PLAN = """\
 Limit  (cost=98{10-49}.{10-99}..98{50-99}.{10-99} rows=200 width=118) (actual rows=200 loops=1)
   Buffers: shared hit={900-4000} read={41000-49000}
   ->  Sort  (cost=98{10-49}.{10-99}..98{50-99}.{10-99} rows=38200 width=118) (actual rows=200)
         Sort Key: $clock, id
         Sort Method: top-N heapsort  Memory: {61-97}kB
         ->  Seq Scan on $area  (cost=0.00..{5000-6900}.{10-99} rows=38200 width=118)
               Filter: ((status)::text = '$source'::text)
               Rows Removed by Filter: 148{1000-9999}
 Planning Time: 0.{101-499} ms
 Execution Time: {281-461}.{100-999} ms"""

# Stanzas of a log, each about one $thing; {low-high} is a number.
LOG = """\
DEBUG   worker-{1-8} orchard.db SELECT FROM $area WHERE id = $id FOR UPDATE rows=1 took={1-9}ms
INFO    worker-{1-8} orchard.$area $verb $thing=$id key=$verb-$part took={18-140}ms
INFO    worker-{1-8} orchard.events published $area.$target id=$id listeners={1-4}

INFO    web-{1-4} "POST /$area/$id/$verb HTTP/1.1" 200 {310-980} 10.4.{1-9}.{10-250} rt=0.{100-480}

INFO    web-{1-4} "POST /$area/$id/$verb HTTP/1.1" 409 {110-180} 10.4.{1-9}.{10-250} rt=0.0{10-99}
WARNING worker-{1-8} orchard.$area skipped $thing=$id: cannot $verb $thing $id: $refusal

WARNING worker-{1-8} orchard.db $area.$verb 1 of 3: no answer within 2000 ms, again in 50 ms
INFO    worker-{1-8} orchard.$area $verb $thing=$id key=$verb-$part took=2{100-900}ms attempt=1
INFO    worker-{1-8} orchard.$area $verb $thing=$id key=$verb-$part took={60-190}ms attempt=2"""
SLOW_LOG = "LOG     pid={2000-2900} {180-990}.{100-999} ms: SELECT * FROM $area WHERE id = $id"
TODO_DONE = (
    "Todos have been modified successfully. Ensure that you continue to use the todo list to track "
    "your progress. Please proceed with the current tasks if applicable"
)
