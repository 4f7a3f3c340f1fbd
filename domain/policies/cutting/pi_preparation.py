"""What pi shows its extensions before it compacts: what would be summed up, and what stays."""

from dataclasses import dataclass

from ...compaction_events import Digest
from ...item import Item
from ...messages import messages_of
from ...ranges import Ranges
from ...summaries.forms.pi import files_of
from ...summaries.summariser import Material
from ...window import Window
from ..measuring.measure import Unit
from ..pi import Pi


@dataclass(frozen=True, slots=True)
class Preparation:
    """A compaction as pi would carry it out, with nothing repaired."""

    first_kept: int
    is_split_turn: bool
    tokens_before: int
    previous_summary: str | None
    history: tuple[Item, ...]
    """To be summed up, but for the beginning of a split turn."""
    prefix: tuple[Item, ...]
    """The beginning of a split turn."""
    kept: tuple[Item, ...]
    digest: Digest
    """The files that its own tools touched, in all that left so far."""

    @property
    def history_messages(self) -> int:
        return len(messages_of(self.history))

    @property
    def prefix_messages(self) -> int:
        return len(messages_of(self.prefix))

    def material(self, budget: int, turn_budget: int) -> Material:
        """What a summary would be written from."""
        prefix = Ranges.of(item.position for item in self.prefix)
        return Material(
            gone=(*self.history, *self.prefix),
            covers=Ranges.span(1, self.first_kept - 1),
            budget=budget,
            turn_budget=turn_budget,
            prefix=prefix,
            previous=self.previous_summary,
            digest=self.digest,
        )


def prepared(policy: Pi, window: Window) -> Preparation | None:
    """None where there is nothing to cut at all, as right after a compaction."""
    cut, items = policy.cut(window), window.open_to_cut[policy.start(window) :]
    if cut.first_kept is None:
        return None
    until = cut.first_kept if cut.turn_start is None else cut.turn_start
    history = tuple(item for item in items if item.place < until)
    prefix = tuple(item for item in items if until <= item.place < cut.first_kept)
    is_reckoned = policy.unit == Unit.RECKONED
    return Preparation(
        first_kept=cut.first_kept,
        is_split_turn=cut.is_split_turn,
        tokens_before=window.used if is_reckoned else policy.estimated(window, items).tokens,
        previous_summary=window.summary.text if window.summary else None,
        history=history,
        prefix=prefix,
        kept=tuple(item for item in items if item.place >= cut.first_kept),
        digest=files_of((*history, *prefix), window.summary.digest if window.summary else Digest()),
    )
