"""All that a view tells a model, as text to look facts up in."""

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain

from ...domain.fidelity.anchors import AnchorKind
from ..entry import Entry
from ..history_view import HistoryView
from .log_text import Log

ENOUGH = 0.8
"""A sentence is still told where one line has this much of its longer words."""
_HANDLE = re.compile(r"#[0-9]{1,15}")
_LONGER = re.compile(r"\w{4,}")


class ViewText:
    """The texts of one view: summary, system prompt, tools, and what shows of each block."""

    def __init__(self, view: HistoryView, log: Log) -> None:
        self._view = view
        self._log = log

    def of(self, entry: Entry) -> str:
        """What shows of a block; a call's arguments as they are meant, not as JSON spells them."""
        if entry.shown is not None:
            return entry.shown
        row = self._log.by_position.get(entry.position)
        return row.text if row else entry.text

    def texts(self) -> Iterator[str]:
        """The summary's first."""
        view = self._view
        yield view.summary.text if view.summary else ""
        yield view.system_prompt or ""
        yield str(view.tool_definitions) if view.tool_definitions else ""
        yield from map(self.of, view.entries)

    @cached_property
    def facts(self) -> Mapping[str, AnchorKind]:
        """The facts that stand in it themselves."""
        found: dict[str, AnchorKind] = {}
        summary, *texts = self.texts()
        for key, kind in chain(self._of_summary(summary), *map(self._facts_in, texts)):
            found.setdefault(key, kind)
        return found

    def _facts_in(self, text: str) -> Iterable[tuple[str, AnchorKind]]:
        return self._log.facts_in(text).items()

    def _of_summary(self, text: str) -> Iterator[tuple[str, AnchorKind]]:
        """Without its tags, and the handles that say where it has its facts from."""
        for key, kind, start, _ in self._log.anchors_in(text):
            if not _HANDLE.fullmatch(key) and text[start - 1 : start] != "<":
                yield key, kind

    @cached_property
    def carried(self) -> frozenset[str]:
        """The keys that some fact in it carries."""
        return frozenset[str]().union(*map(self._log.carried_in, self.texts()))

    @cached_property
    def whole(self) -> str:
        return "\n".join(self.texts())

    @cached_property
    def folded(self) -> str:
        """All of it in one line, whatever its case."""
        return folded(self.whole)

    def places(self, keys: Container[str]) -> Iterator[tuple[int, str]]:
        """The blocks that show any of these, each with what it shows."""
        for entry in self._view.entries:
            for key in self._log.carried_in(self.of(entry)):
                if key in keys:
                    yield entry.position, key

    def words(self, keys: Iterable[str]) -> Mapping[str, str]:
        """How these facts are spelled in it, each where it is told first."""
        missing = set(keys)
        found: dict[str, str] = {}
        for text in self.texts():
            if here := missing & self._log.facts_in(text).keys():
                spelled = self._log.spelled_in(text)
                found |= {key: spelled[key] for key in here}
                missing -= here
        return found

    def tells(self, key: str) -> bool:
        """Whether a fact is in it, be it as a part of something else."""
        return key in self.carried or key in self.whole

    def untold(self, sentences: Iterable[str]) -> frozenset[str]:
        """Those of the sentences that are not in it, neither word for word nor nearly so."""
        missing = {text for text in sentences if folded(text) not in self.folded}
        wanted = {text: frozenset(_LONGER.findall(text.casefold())) for text in missing}
        looked_for = frozenset[str]().union(*wanted.values())
        lines = dict.fromkeys(self.whole.casefold().split("\n")) if looked_for else ()
        telling = {looked_for.intersection(_LONGER.findall(line)) for line in lines}
        return frozenset(
            text
            for text, words in wanted.items()
            if not words or not any(len(words & line) >= ENOUGH * len(words) for line in telling)
        )


def folded(text: str) -> str:
    return " ".join(text.split()).casefold()
