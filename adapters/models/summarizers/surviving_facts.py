"""Names the facts that a summary should hold, and adds those that a model left out."""

from collections.abc import Iterable, Sequence

from ....domain.item import Item
from ....domain.ranges import Ranges
from ....domain.summaries.extraction.clean_text import add_handles, fold_lines
from ....domain.summaries.extraction.facts import FactKind, SummaryFact, rank_facts
from ....domain.summaries.extraction.sections import SummarySection

FACTS_SHARE = 0.12
"""Part of a summary's room that is kept for facts which the model does not name."""
_MAX_FACTS = 60
"""Facts that are looked for at most."""
MAX_ROW_CHARACTERS = 160
"""Characters of facts in one line."""


def choose_facts(items: Iterable[Item]) -> list[SummaryFact]:
    """The facts that are likeliest to be needed again, best first."""
    return rank_facts(items, {})[:_MAX_FACTS]


def find_missing_rows(text: str, facts: Sequence[SummaryFact], covers: Ranges, room: int) -> str:
    """Lines of the facts that a text does not name, the best of them, in so many characters."""
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
"""Characters of a fact besides its words, at most: its handle, and its part of a line."""


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
    """A line names three handles at most, and each fact's has to be among them."""
    handles = {one.newest for one in row} | {fact.newest}
    return (
        len(handles) <= 3
        and sum(len(one.text) for one in row) + len(fact.text) <= MAX_ROW_CHARACTERS
    )
