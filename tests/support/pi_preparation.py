"""What pi would carry out, without repairs: its cut, what is summed up, and what stays."""

from collections.abc import Iterable
from dataclasses import dataclass

from cutbank import Material, Pi, Ranges, ToolCall, Window, WindowItem
from cutbank.domain.compaction_events import Digest
from cutbank.domain.item import Role, find_message_start, find_role
from cutbank.domain.policies.reference.pi_mono import PiAsShipped


@dataclass(frozen=True)
class PiCut:
    first_kept: int | None
    """Position of the first block to keep; None if there is nothing to cut."""
    turn_start: int | None = None
    """Where the turn begins that the cut splits, if it splits one."""


@dataclass(frozen=True)
class PiPreparation:
    first_kept: int
    is_split_turn: bool
    tokens_before: int
    previous_summary: str | None
    history: tuple[WindowItem, ...]
    """The items to summarize, except the beginning of a split turn."""
    prefix: tuple[WindowItem, ...]
    kept: tuple[WindowItem, ...]
    digest: Digest
    """The files that pi's own tools touched, in everything that has left so far."""

    def make_material(self, budget: int, turn_budget: int) -> Material:
        return Material(
            removed_items=(*self.history, *self.prefix),
            covers=Ranges.span(1, self.first_kept - 1),
            budget=budget,
            turn_budget=turn_budget,
            prefix=Ranges.of(item.position for item in self.prefix),
            previous=self.previous_summary,
            digest=self.digest,
        )


def add_touched_files(items: Iterable[WindowItem], previous: Digest) -> Digest:
    """Return the files that pi's own tools touched, added to the previous ones.

    Failed calls count too; modified files are not listed as read.
    """
    read, written = set(previous.read_files), set(previous.modified_files)
    for item in items:
        if isinstance(call := item.block, ToolCall):
            path = call.parse_arguments().get("path")
            if isinstance(path, str) and path:
                if call.name == "read":
                    read.add(path)
                elif call.name in {"write", "edit"}:
                    written.add(path)
    return previous.model_copy(
        update={
            "read_files": tuple(sorted(read - written, key=_make_utf16_key)),
            "modified_files": tuple(sorted(written, key=_make_utf16_key)),
        }
    )


def _make_utf16_key(name: str) -> bytes:
    """Sort by UTF-16 units, as JavaScript does."""
    return name.encode("utf-16-be", "surrogatepass")


def find_pi_cut(policy: Pi, window: Window) -> PiCut:
    items, at = policy.list_open_items(window), policy.find_first_kept(window)
    if at == len(items):
        return PiCut(None)
    if find_role(items[at]) is Role.USER:
        return PiCut(items[at].position)
    asked = (i for i in range(at, -1, -1) if find_role(items[i]) in _ASKING)
    turn = next((find_message_start(items, i) for i in asked), None)
    return PiCut(items[at].position, None if turn is None else items[turn].position)


_ASKING = {Role.USER, Role.DEVELOPER}


def prepare_like_pi(policy: PiAsShipped, window: Window) -> PiPreparation | None:
    cut, items = find_pi_cut(policy, window), policy.list_open_items(window)
    if cut.first_kept is None:
        return None
    until = cut.first_kept if cut.turn_start is None else cut.turn_start
    history = tuple(item for item in items if item.place < until)
    prefix = tuple(item for item in items if until <= item.place < cut.first_kept)
    return PiPreparation(
        first_kept=cut.first_kept,
        is_split_turn=cut.turn_start is not None,
        tokens_before=policy.measure_items(window, items).tokens,
        previous_summary=window.summary.text if window.summary else None,
        history=history,
        prefix=prefix,
        kept=tuple(item for item in items if item.place >= cut.first_kept),
        digest=add_touched_files(
            (*history, *prefix), window.summary.digest if window.summary else Digest()
        ),
    )
