"""Finds the facts that one view contains and another does not, the most important first."""

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any, Literal

from ..domain.blocks import BlockKind
from ..domain.cached_property import cached_property
from ..domain.fidelity.anchors import AnchorKind
from ..domain.fidelity.generic_keys import GENERIC_KEYS
from ..domain.fidelity.rows import AGENT_KINDS, FidelityRow, RowKind, SessionRows
from ..domain.fidelity.session_reading import SessionReading
from ..domain.item import WindowItem
from ..domain.ranges import Ranges
from ..domain.summaries.earlier_summary import read_earlier_lines
from ..domain.summaries.findings import classify_statement, iter_rules
from ..domain.summaries.layout import SummaryLine, SummarySection
from ..domain.summaries.statements import BlockReader
from .history_view import HistoryView
from .view_content import ViewEntry

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


_MIN_OFTEN_CALLS, _OFTEN_SHARE = 10, 0.1
"""The least number of calls, and share of all calls, that contain a word of their form."""
_MIN_SHARED_SHARE = 0.8
"""A sentence is still present if one line has this share of its longer words."""
_HANDLE = re.compile(r"#[0-9]{1,15}")
_LONG_WORD = re.compile(r"\w{4,}")


class SessionText(SessionReading):
    """A session's text, to find where a fact occurs and whether it was used again.

    The facts of each text are found once, for any number of comparisons of the session's views.
    """

    def __init__(self, rows: SessionRows) -> None:
        super().__init__(rows)
        self.map_spellings = cache(self._map_spellings)
        """Returns the first spelling of each fact in a text."""
        self.by_position: Mapping[int, FidelityRow] = {row.position: row for row in rows.rows}

    @cached_property
    def call_words(self) -> frozenset[str]:
        """Words in the form of tool calls: argument names, and words in a tenth of all calls."""
        calls = [row for row in self.rows.rows if row.tool]
        often = Counter(key for row in calls for key in self.find_carried_keys(row.text))
        least = max(_MIN_OFTEN_CALLS, len(calls) * _OFTEN_SHARE)
        words = {key for key, times in often.items() if times >= least}
        return frozenset(words.union(*(_collect_field_names(row.arguments) for row in calls)))

    @cached_property
    def carried_keys(self) -> Mapping[int, frozenset[str]]:
        return dict(zip(self.positions, self.row_keys, strict=True))

    def _map_spellings(self, text: str) -> Mapping[str, str]:
        spelled: dict[str, str] = {}
        for key, _, start, end in self.words.find_anchors(text):
            spelled.setdefault(key, text[start:end])
        return spelled


class ViewText:
    """The texts of one view: summary, system prompt, tools, and the visible text of each block."""

    def __init__(self, view: HistoryView, log: SessionText) -> None:
        self._view = view
        self._log = log

    def render_entry(self, entry: ViewEntry) -> str:
        """Return the visible text of a block; a call's arguments are not escaped as JSON."""
        if entry.shown is not None:
            return entry.shown
        row = self._log.by_position.get(entry.position)
        return row.text if row else entry.text

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The summary's text first, which is empty if there is no summary."""
        view = self._view
        return (
            view.summary.text if view.summary else "",
            view.system_prompt or "",
            str(view.tool_definitions) if view.tool_definitions else "",
            *map(self.render_entry, view.entries),
        )

    @cached_property
    def facts(self) -> Mapping[str, AnchorKind]:
        summary, *texts = self.texts
        found: dict[str, AnchorKind] = {}
        others = (self._log.find_facts(text).items() for text in texts)
        for key, kind in chain(self._iter_summary_facts(summary), *others):
            found.setdefault(key, kind)
        return found

    def _iter_summary_facts(self, text: str) -> Iterator[tuple[str, AnchorKind]]:
        """Yield a summary's facts without its tags and handles."""
        for key, kind, start, _ in self._log.words.find_anchors(text):
            if not _HANDLE.fullmatch(key) and text[start - 1 : start] != "<":
                yield key, kind

    @cached_property
    def carried_keys(self) -> frozenset[str]:
        return frozenset[str]().union(*map(self._log.find_carried_keys, self.texts))

    @cached_property
    def full_text(self) -> str:
        return "\n".join(self.texts)

    def iter_places(self, keys: Container[str]) -> Iterator[tuple[int, str]]:
        """Yield the blocks that show any of the keys, each with the key."""
        for entry in self._view.entries:
            for key in self._log.find_carried_keys(self.render_entry(entry)):
                if key in keys:
                    yield entry.position, key

    def map_spellings(self, keys: Iterable[str]) -> Mapping[str, str]:
        """Return the first spelling of each fact."""
        missing = set(keys)
        found: dict[str, str] = {}
        for text in self.texts:
            if here := missing & self._log.find_facts(text).keys():
                spelled = self._log.map_spellings(text)
                found |= {key: spelled[key] for key in here}
                missing -= here
        return found

    def has_fact(self, key: str) -> bool:
        """Check whether the text contains a fact, possibly as a part of something else."""
        return key in self.carried_keys or key in self.full_text

    def find_missing_sentences(self, sentences: Iterable[str]) -> frozenset[str]:
        """Return the sentences that it contains neither word for word nor approximately."""
        whole = _fold_case(self.full_text)
        missing = {text for text in sentences if _fold_case(text) not in whole}
        wanted = {text: frozenset(_LONG_WORD.findall(text.casefold())) for text in missing}
        looked_for = frozenset[str]().union(*wanted.values())
        lines = dict.fromkeys(self.full_text.casefold().split("\n")) if looked_for else ()
        telling = {looked_for.intersection(_LONG_WORD.findall(line)) for line in lines}
        return frozenset(
            text
            for text, words in wanted.items()
            if not words
            or not any(len(words & line) >= _MIN_SHARED_SHARE * len(words) for line in telling)
        )


def _collect_field_names(value: Any) -> set[str]:
    if isinstance(value, Mapping):
        return set(value).union(*map(_collect_field_names, value.values()))
    if isinstance(value, list | tuple):
        return set[str]().union(*map(_collect_field_names, value))
    return set()


def _fold_case(text: str) -> str:
    return " ".join(text.split()).casefold()


def find_lost_facts(
    old: HistoryView, new: HistoryView, left: Iterable[WindowItem], log: SessionText
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


def _iter_decisions(items: Iterable[WindowItem], reader: BlockReader) -> Iterator[SummaryLine]:
    for item in items:
        if item.kind in _AGENT_TEXTS:
            for statement in reader.read(item.block).sentences:
                if statement.sentence:
                    section = classify_statement(statement.sentence)
                    yield SummaryLine(section, statement.text, Ranges.of([item.position]))


_AGENT_TEXTS = frozenset({BlockKind.ASSISTANT, BlockKind.THINKING})


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
