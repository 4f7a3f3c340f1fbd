"""Finds facts in the text of a view."""

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain

from ...domain.fidelity.anchors import AnchorKind
from ..history_view import HistoryView
from ..view_content import ViewEntry
from .session_text import SessionText

_MIN_SHARED_SHARE = 0.8
"""A sentence is still present if one line has this share of its longer words."""
_HANDLE = re.compile(r"#[0-9]{1,15}")
_LONG_WORD = re.compile(r"\w{4,}")


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

    def iter_texts(self) -> Iterator[str]:
        view = self._view
        yield view.summary.text if view.summary else ""
        yield view.system_prompt or ""
        yield str(view.tool_definitions) if view.tool_definitions else ""
        yield from map(self.render_entry, view.entries)

    @cached_property
    def facts(self) -> Mapping[str, AnchorKind]:
        found: dict[str, AnchorKind] = {}
        summary, *texts = self.iter_texts()
        for key, kind in chain(self._iter_summary_facts(summary), *map(self._iter_facts, texts)):
            found.setdefault(key, kind)
        return found

    def _iter_facts(self, text: str) -> Iterable[tuple[str, AnchorKind]]:
        return self._log.find_facts(text).items()

    def _iter_summary_facts(self, text: str) -> Iterator[tuple[str, AnchorKind]]:
        """Yield a summary's facts without its tags and handles."""
        for key, kind, start, _ in self._log.iter_anchors(text):
            if not _HANDLE.fullmatch(key) and text[start - 1 : start] != "<":
                yield key, kind

    @cached_property
    def carried_keys(self) -> frozenset[str]:
        return frozenset[str]().union(*map(self._log.find_carried_keys, self.iter_texts()))

    @cached_property
    def full_text(self) -> str:
        return "\n".join(self.iter_texts())

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
        for text in self.iter_texts():
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


def _fold_case(text: str) -> str:
    return " ".join(text.split()).casefold()
