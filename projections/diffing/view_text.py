"""All that a view tells a model, as text to look facts up in."""

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain

from ...domain.fidelity.anchors import AnchorKind
from ..history_view import HistoryView
from ..view_entry import ViewEntry
from .session_text import SessionText

_MIN_SHARED_SHARE = 0.8
"""A sentence is still told where one line has this much of its longer words."""
_HANDLE = re.compile(r"#[0-9]{1,15}")
_LONG_WORD = re.compile(r"\w{4,}")


class ViewText:
    """The texts of one view: summary, system prompt, tools, and what shows of each block."""

    def __init__(self, view: HistoryView, log: SessionText) -> None:
        self._view = view
        self._log = log

    def render_entry(self, entry: ViewEntry) -> str:
        """What shows of a block; a call's arguments as they are meant, not as JSON spells them."""
        if entry.shown is not None:
            return entry.shown
        row = self._log.by_position.get(entry.position)
        return row.text if row else entry.text

    def iter_texts(self) -> Iterator[str]:
        """The summary's first."""
        view = self._view
        yield view.summary.text if view.summary else ""
        yield view.system_prompt or ""
        yield str(view.tool_definitions) if view.tool_definitions else ""
        yield from map(self.render_entry, view.entries)

    @cached_property
    def facts(self) -> Mapping[str, AnchorKind]:
        """The facts that stand in it themselves."""
        found: dict[str, AnchorKind] = {}
        summary, *texts = self.iter_texts()
        for key, kind in chain(self._iter_summary_facts(summary), *map(self._iter_facts, texts)):
            found.setdefault(key, kind)
        return found

    def _iter_facts(self, text: str) -> Iterable[tuple[str, AnchorKind]]:
        return self._log.find_facts(text).items()

    def _iter_summary_facts(self, text: str) -> Iterator[tuple[str, AnchorKind]]:
        """Without its tags, and the handles that say where it has its facts from."""
        for key, kind, start, _ in self._log.iter_anchors(text):
            if not _HANDLE.fullmatch(key) and text[start - 1 : start] != "<":
                yield key, kind

    @cached_property
    def carried_keys(self) -> frozenset[str]:
        """The keys that some fact in it carries."""
        return frozenset[str]().union(*map(self._log.find_carried_keys, self.iter_texts()))

    @cached_property
    def full_text(self) -> str:
        return "\n".join(self.iter_texts())

    @cached_property
    def folded_text(self) -> str:
        """All of it in one line, whatever its case."""
        return _fold_case(self.full_text)

    def iter_places(self, keys: Container[str]) -> Iterator[tuple[int, str]]:
        """The blocks that show any of these, each with what it shows."""
        for entry in self._view.entries:
            for key in self._log.find_carried_keys(self.render_entry(entry)):
                if key in keys:
                    yield entry.position, key

    def map_spellings(self, keys: Iterable[str]) -> Mapping[str, str]:
        """How these facts are spelled in it, each where it is told first."""
        missing = set(keys)
        found: dict[str, str] = {}
        for text in self.iter_texts():
            if here := missing & self._log.find_facts(text).keys():
                spelled = self._log.map_spellings(text)
                found |= {key: spelled[key] for key in here}
                missing -= here
        return found

    def has_fact(self, key: str) -> bool:
        """Whether a fact is in it, be it as a part of something else."""
        return key in self.carried_keys or key in self.full_text

    def find_missing_sentences(self, sentences: Iterable[str]) -> frozenset[str]:
        """Those of the sentences that are not in it, neither word for word nor nearly so."""
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
