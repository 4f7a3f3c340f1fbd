"""Finds the facts that one view contains and another does not, the most important first."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from ..domain.blocks import Kind
from ..domain.fidelity.anchors import AnchorKind
from ..domain.fidelity.generic_keys import GENERIC_KEYS
from ..domain.fidelity.rows import AGENT_KINDS, RowKind
from ..domain.item import Item
from ..domain.ranges import Ranges
from ..domain.summaries.earlier_summary import read_earlier_lines
from ..domain.summaries.findings import classify_statement, iter_rules
from ..domain.summaries.layout import SummaryLine, SummarySection
from ..domain.summaries.statements import BlockReader
from .history_view import HistoryView
from .view_text import SessionText, ViewText

SentenceKind = Literal["constraint", "decision"]
CONSTRAINT: SentenceKind = "constraint"
DECISION: SentenceKind = "decision"


@dataclass(frozen=True, slots=True)
class LostFact:
    """A fact that can be looked up by its handles, but not guessed."""

    key: str
    """Its key, which is independent of spelling: a path has no project folder."""
    text: str
    """Its first spelling in the view."""
    kind: AnchorKind | SentenceKind
    """For a sentence: `constraint` for a user's, `decision` for the agent's."""
    handles: Ranges
    """The blocks that contain it, up to the compared positions; empty if only a summary does."""
    by_user: bool
    uses: int = 0
    """The number of these blocks that the agent wrote."""
    later_uses: Ranges = Ranges()
    """Where the agent wrote it later, if no other block had repeated it by then."""
    repeated_at: int | None = None
    """The first later block that repeats it before the agent used it."""
    is_minor: bool = False
    """Whether it is probably unimportant: a word in the form of tool calls, or an unused number
    that only tools wrote."""

    @property
    def block_count(self) -> int:
        return len(self.handles)

    @property
    def newest(self) -> int:
        return self.handles.runs[-1][1] if self.handles else 0

    @property
    def rank(self) -> tuple[int, int, int, int, int, str]:
        """The sort key, most important first: used again, a user's, decided, used often, new."""
        if self.later_uses:
            group = 0
        elif self.by_user:
            group = 1 if self.kind == CONSTRAINT else 2
        else:
            group = 3 if self.kind in {CONSTRAINT, DECISION} else 4
        # A fact in no block was invented by a summary, or is part of its markup.
        group = group if self.handles else 5
        group = 6 if self.is_minor else group
        return (group, -len(self.later_uses), -self.uses, -self.block_count, -self.newest, self.key)


def find_lost_facts(
    old: HistoryView, new: HistoryView, left: Iterable[Item], log: SessionText
) -> tuple[LostFact, ...]:
    """Return what `old` has and `new` does not; `left` are the blocks that only `old` has."""
    before, after = ViewText(old, log), ViewText(new, log)
    upto = max(old.coordinate.position, new.coordinate.position)
    keys = {
        key: kind
        for key, kind in before.facts.items()
        # Every view lists the tools, and any model knows what all projects share.
        if key not in log.tool_names and key not in GENERIC_KEYS and not after.has_fact(key)
    }
    left, reader = tuple(left), BlockReader()
    sentences = [*iter_rules(left, (), reader), *_iter_decisions(left, reader)]
    if old.summary is not None and old.summary_digest != new.summary_digest:
        summary = old.summary
        sentences += read_earlier_lines(summary.sections, summary.text, summary.covers)
    found = [*_iter_lost_anchors(keys, before, upto, log), *_iter_lost_sentences(sentences, after)]
    return tuple(sorted(found, key=lambda fact: fact.rank))


def _iter_decisions(items: Iterable[Item], reader: BlockReader) -> Iterator[SummaryLine]:
    for item in items:
        if item.kind in _AGENT_TEXTS:
            for statement in reader.read(item.block).statements:
                if statement.sentence:
                    section = classify_statement(statement.sentence)
                    yield SummaryLine(section, statement.text, Ranges.of([item.position]))


_AGENT_TEXTS = frozenset({Kind.ASSISTANT, Kind.THINKING})


def _iter_lost_anchors(
    keys: Mapping[str, AnchorKind], before: ViewText, upto: int, log: SessionText
) -> Iterator[LostFact]:
    told: dict[str, set[int]] = {key: set() for key in keys}
    used: dict[str, list[int]] = {key: [] for key in keys}
    uses = dict.fromkeys(keys, 0)
    by_user: set[str] = set()
    again: dict[str, int] = {}
    for position, key in before.iter_places(keys):
        told[key].add(position)
    wanted = frozenset(keys)
    for row in log.rows.rows if keys else ():
        for key in wanted & log.carried_keys[row.position]:
            if row.position <= upto:
                told[key].add(row.position)
                uses[key] += row.kind in AGENT_KINDS
                if row.kind is RowKind.USER:
                    by_user.add(key)
            elif row.kind not in AGENT_KINDS:
                if not used[key]:
                    again.setdefault(key, row.position)
            elif key not in again:
                used[key].append(row.position)
    words = before.map_spellings(keys)
    for key, kind in keys.items():
        yield LostFact(
            key=key,
            text=words[key],
            kind=kind,
            handles=Ranges.of(told[key]),
            by_user=key in by_user,
            uses=uses[key],
            later_uses=Ranges.of(used[key]),
            repeated_at=again.get(key),
            is_minor=key not in by_user
            and (
                (kind is AnchorKind.IDENTIFIER and key in log.call_words)
                or (kind is AnchorKind.NUMBER and not uses[key] and not used[key])
            ),
        )


def _iter_lost_sentences(lines: Iterable[SummaryLine], after: ViewText) -> Iterator[LostFact]:
    handles: dict[tuple[str, SentenceKind], Ranges] = {}
    quoted: set[str] = set()
    for line in lines:
        if kind := _KINDS.get(line.section):
            said = (line.text, kind)
            handles[said] = line.handles | handles.get(said, Ranges())
            # A summary may state a rule in its own words.
            if line.is_quote:
                quoted.add(line.text)
    untold = after.find_missing_sentences(text for text, _ in handles)
    for (text, kind), told in handles.items():
        if text in untold:
            yield LostFact(text, text, kind, told, by_user=text in quoted)


_KINDS: Mapping[SummarySection, SentenceKind] = {
    SummarySection.CONSTRAINTS: CONSTRAINT,
    SummarySection.DECISIONS: DECISION,
}
