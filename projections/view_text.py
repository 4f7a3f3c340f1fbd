"""Finds facts in the texts of a session and of its views."""

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import cache, cached_property
from itertools import chain
from typing import Any

from ..domain.fidelity.anchors import AnchorKind
from ..domain.fidelity.rows import FidelityRow, SessionRows
from ..domain.fidelity.session_reading import SessionReading
from .history_view import HistoryView
from .view_content import ViewEntry

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
        return dict(zip(self.positions, self.carried, strict=True))

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

    @cached_property
    def folded_text(self) -> str:
        """The whole text in one line, with its case folded."""
        return _fold_case(self.full_text)

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
        missing = {text for text in sentences if _fold_case(text) not in self.folded_text}
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
