"""Chooses facts that a summary should keep, and adds those that a model left out."""

from collections.abc import Iterable, Sequence

from ....domain.item import Item
from ....domain.ranges import Ranges
from ....domain.summaries.extraction.clean_text import add_handles, fold_lines
from ....domain.summaries.extraction.facts import FactKind, SummaryFact, rank_facts
from ....domain.summaries.extraction.sections import SummarySection

FACTS_SHARE = 0.12
"""The share of a summary's room for facts that the model does not name."""
_MAX_FACTS = 60
"""The most facts to look for."""
MAX_ROW_CHARACTERS = 160
"""The most characters of facts in one line."""


def choose_facts(items: Iterable[Item]) -> list[SummaryFact]:
    """Return the facts that are most likely to be needed again, best first."""
    return rank_facts(items, {})[:_MAX_FACTS]


def find_missing_rows(text: str, facts: Sequence[SummaryFact], covers: Ranges, room: int) -> str:
    """Return lines with the best facts that the text lacks, within that many characters."""
    heading = f"## {SummarySection.CONTEXT}"
    room -= len(heading)
    chosen: list[SummaryFact] = []
    for fact in facts:
        if fact.text in text or fact.newest not in covers:
            continue
        room -= len(fact.text) + _ROW_OVERHEAD
        if room < 0:
            break
        chosen.append(fact)
    rows = [
        row
        for sort in FactKind
        for row in _make_rows(sort, [fact for fact in chosen if fact.kind is sort])
    ]
    return "\n".join([heading, *rows]) if rows else ""


_ROW_OVERHEAD = 24
"""The most characters of a fact apart from its text: its handle, and its share of a line."""


def _make_rows(sort: FactKind, facts: Sequence[SummaryFact]) -> list[str]:
    rows: list[list[SummaryFact]] = []
    for fact in sorted(facts, key=lambda fact: fact.newest):
        if rows and _has_room(rows[-1], fact):
            rows[-1].append(fact)
        else:
            rows.append([fact])
    return [
        add_handles(
            f"- {sort}: {', '.join(fold_lines(fact.text) for fact in row)}",
            Ranges.of(fact.newest for fact in row),
        )
        for row in rows
    ]


def _has_room(row: Sequence[SummaryFact], fact: SummaryFact) -> bool:
    """Return whether the fact fits; a line names three handles at most."""
    handles = {one.newest for one in row} | {fact.newest}
    return (
        len(handles) <= 3
        and sum(len(one.text) for one in row) + len(fact.text) <= MAX_ROW_CHARACTERS
    )
