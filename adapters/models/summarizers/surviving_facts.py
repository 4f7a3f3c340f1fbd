"""Names the facts that a summary should hold, and adds those that a model left out."""

from collections.abc import Iterable, Sequence

from ....domain.item import Item
from ....domain.ranges import Ranges
from ....domain.summaries.extraction.facts import Fact, Sort, facts_of
from ....domain.summaries.extraction.sections import Section
from ....domain.summaries.extraction.wording import folded, with_handles

SHARE = 0.12
"""Part of a summary's room that is kept for facts which the model does not name."""
MOST = 60
"""Facts that are looked for at most."""
ROW = 160
"""Characters of facts in one line."""


def expected(items: Iterable[Item]) -> list[Fact]:
    """The facts that are likeliest to be needed again, best first."""
    return facts_of(items, {})[:MOST]


def missing_rows(text: str, facts: Sequence[Fact], covers: Ranges, room: int) -> str:
    """Lines of the facts that a text does not name, the best of them, in so many characters."""
    heading = f"## {Section.CONTEXT}"
    room -= len(heading)
    chosen: list[Fact] = []
    for fact in facts:
        if fact.text in text or fact.newest not in covers:
            continue
        room -= len(fact.text) + _COST
        if room < 0:
            break
        chosen.append(fact)
    rows = [
        row for sort in Sort for row in _rows(sort, [fact for fact in chosen if fact.sort is sort])
    ]
    return "\n".join([heading, *rows]) if rows else ""


_COST = 24
"""Characters of a fact besides its words, at most: its handle, and its part of a line."""


def _rows(sort: Sort, facts: Sequence[Fact]) -> list[str]:
    rows: list[list[Fact]] = []
    for fact in sorted(facts, key=lambda fact: fact.newest):
        if rows and _has_room(rows[-1], fact):
            rows[-1].append(fact)
        else:
            rows.append([fact])
    return [
        with_handles(
            f"- {sort}: {', '.join(folded(fact.text) for fact in row)}",
            Ranges.of(fact.newest for fact in row),
        )
        for row in rows
    ]


def _has_room(row: Sequence[Fact], fact: Fact) -> bool:
    """A line names three handles at most, and each fact's has to be among them."""
    handles = {one.newest for one in row} | {fact.newest}
    return len(handles) <= 3 and sum(len(one.text) for one in row) + len(fact.text) <= ROW
