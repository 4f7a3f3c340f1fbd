"""Prepares a compaction as pi shows it to its extensions: what to summarize, and what stays."""

from dataclasses import dataclass

from ...compaction_events import Digest
from ...item import Item
from ...messages import group_messages
from ...ranges import Ranges
from ...summaries.summarizer import Material
from ...summaries.templates import add_touched_files
from ...window import Window
from ..measuring.text_measure import SizeUnit
from ..pi import Pi


@dataclass(frozen=True, slots=True)
class PiPreparation:
    """A compaction as pi would carry it out, without repairs."""

    first_kept: int
    is_split_turn: bool
    tokens_before: int
    previous_summary: str | None
    history: tuple[Item, ...]
    """The items to summarize, except the beginning of a split turn."""
    prefix: tuple[Item, ...]
    """The beginning of a split turn."""
    kept: tuple[Item, ...]
    digest: Digest
    """The files that pi's own tools touched, in everything that has left so far."""

    @property
    def history_messages(self) -> int:
        return len(group_messages(self.history))

    @property
    def prefix_messages(self) -> int:
        return len(group_messages(self.prefix))

    def make_material(self, budget: int, turn_budget: int) -> Material:
        prefix = Ranges.of(item.position for item in self.prefix)
        return Material(
            removed_items=(*self.history, *self.prefix),
            covers=Ranges.span(1, self.first_kept - 1),
            budget=budget,
            turn_budget=turn_budget,
            prefix=prefix,
            previous=self.previous_summary,
            digest=self.digest,
        )


def prepare_like_pi(policy: Pi, window: Window) -> PiPreparation | None:
    """Return the preparation; None if there is nothing to cut, as right after a compaction."""
    cut, items = policy.find_cut(window), window.open_to_cut[policy.find_start(window) :]
    if cut.first_kept is None:
        return None
    until = cut.first_kept if cut.turn_start is None else cut.turn_start
    history = tuple(item for item in items if item.place < until)
    prefix = tuple(item for item in items if until <= item.place < cut.first_kept)
    is_reckoned = policy.unit == SizeUnit.RECKONED
    return PiPreparation(
        first_kept=cut.first_kept,
        is_split_turn=cut.is_split_turn,
        tokens_before=window.used_tokens
        if is_reckoned
        else policy.estimate_items(window, items).tokens,
        previous_summary=window.summary.text if window.summary else None,
        history=history,
        prefix=prefix,
        kept=tuple(item for item in items if item.place >= cut.first_kept),
        digest=add_touched_files(
            (*history, *prefix), window.summary.digest if window.summary else Digest()
        ),
    )
