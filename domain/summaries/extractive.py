"""Writes a summary by rules, in words that stand in the log: it needs no model and cannot fail."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from ..ranges import Ranges
from ..token_budget import CHARS_PER_TOKEN, estimate_text
from .extraction.candidates import by_weight, candidates, stems
from .extraction.excerpts import excerpts
from .extraction.facts import Fact, Sort, facts_of, words_of
from .extraction.file_lists import file_lists
from .extraction.page import LIST_ROW, Page
from .extraction.sections import LAYOUT, Line, Section, carried, inherited, laid_out
from .extraction.wording import cited, folded, with_handles
from .gate import ALWAYS_SMALL, worthwhile
from .summariser import Draft, Material

SHARES: Mapping[Section, float] = {
    Section.GOAL: 0.18,
    Section.CONSTRAINTS: 0.10,
    Section.DONE: 0.15,
    Section.IN_PROGRESS: 0.04,
    Section.BLOCKED: 0.06,
    Section.DECISIONS: 0.12,
    Section.NEXT: 0.05,
    Section.TURN: 0.0,
    Section.CONTEXT: 0.05,
}
"""What part of the room each section has first call on, in the order in which they call."""
FOR_FILES = 0.18
FOR_FACTS = 0.35
FOR_LEDGER = 0.15
"""Room kept for the lists of files, for the facts in all, and for those that have no line."""
NEEDS_HEADINGS = 480
"""Characters below which a summary is its most important lines and nothing else."""
_GLANCE = 160
MOST_FACTS = 0.25
_BETWEEN = len(", ")
_HANDLES = 36
"""Characters that the handles of a row may take."""

_PROGRESS = (Section.DONE, Section.IN_PROGRESS, Section.BLOCKED)


@dataclass(frozen=True)
class Extractive:
    """Verbatim words, chosen by rules, each with its handle; the same for the same material."""

    name: str = "extractive"

    def summarise(self, material: Material) -> Draft:
        """A draft within the budget, whatever was said."""
        room = CHARS_PER_TOKEN * max(0, min(material.budget, _enough(material)))
        sections = material.previous_sections
        parts = inherited(sections, material.previous)
        own = {heading: body for heading, body in sections.items() if heading in LAYOUT}
        earlier = list(carried(own, None, material.covers))
        if room < NEEDS_HEADINGS:
            # Another writer's handles need not be true.
            earlier += carried({}, "\n".join(parts), Ranges())
        listed = [line for line in earlier if line.is_list]
        lines = candidates(material, [line for line in earlier if not line.is_list])
        if room < NEEDS_HEADINGS:
            draft = _in_few_words(lines, room)
        else:
            facts = facts_of(material.gone, _facts_in(listed), stems(material.instructions or ""))
            draft = _on_a_page(parts, lines, facts, room, material)
        return draft if 0 < len(draft.text) <= room else _nothing_said(material, room)


def _enough(material: Material) -> int:
    """Tokens beyond which a summary of so little would hardly be one."""
    gone = sum(item.tokens for item in material.gone)
    return min(
        worthwhile(material), max(gone // 2 + estimate_text(material.previous or ""), ALWAYS_SMALL)
    )


def _in_few_words(lines: Sequence[Line], room: int) -> Draft:
    """The most important lines without headings, the first of them at any price."""
    taken: list[tuple[Line, str]] = []
    for line in sorted((line for line in lines if line.section is not Section.TURN), key=_rank):
        written = line.within(room - len("- ") if not taken else _GLANCE)
        cost = len(written) + len("- ") + (len("\n") if taken else 0)
        if cost <= room:
            taken.append((line, written))
            room -= cost
    taken.sort(key=lambda taken: taken[0].newest)
    return Draft(
        "\n".join(f"- {written}" for _, written in taken),
        laid_out((line.section, written) for line, written in taken),
        Ranges(run for line, _ in taken for run in cited(line.handles).runs),
    )


def _rank(line: Line) -> int:
    """Goals, then constraints, then what weighs most; for a sort that keeps the order."""
    return {Section.GOAL: 0, Section.CONSTRAINTS: 1}.get(line.section, 2)


def _nothing_said(material: Material, room: int) -> Draft:
    """For blocks without words, or a room too small for any."""
    text = with_handles("Nothing to quote", cited(material.covers))
    return Draft(text, cites=cited(material.covers)) if len(text) <= room else Draft("-"[:room])


def _on_a_page(
    parts: Sequence[str],
    lines: Sequence[Line],
    facts: Sequence[Fact],
    room: int,
    material: Material,
) -> Draft:
    page = Page(room)
    page.add_tags(file_lists(material.digest, material.gone, int(room * FOR_FILES)))
    if parts:
        gone = sum(item.tokens for item in material.gone)
        page.add_earlier(parts, page.left - min(room // 2, gone * CHARS_PER_TOKEN // 2))
    lines = by_weight(_about_facts(lines, facts))
    rest = page.add_shares(lines, shares(material))
    rest = page.add(rest, spare=int(room * FOR_FACTS))
    facts, length = _unsaid(facts, page.words()), page.length
    page.add(excerpts(facts, material.gone), spare=int(room * FOR_LEDGER))
    page.add(_ledger(_unsaid(facts, page.words(length)), page))
    page.add(rest)
    page.add_earlier(parts, page.left)
    return Draft(page.text, page.sections, page.cites)


def shares(material: Material) -> dict[Section, float]:
    """The shares of the sections, where a turn that goes on takes its part of the progress."""
    gone = sum(item.tokens for item in material.gone)
    inside = sum(item.tokens for item in material.gone if item.position in material.prefix)
    part = inside / gone if gone else 0.0
    divided = {s: share * (1 - part) if s in _PROGRESS else share for s, share in SHARES.items()}
    return divided | {Section.TURN: part * sum(SHARES[section] for section in _PROGRESS)}


def _facts_in(lines: Iterable[Line]) -> dict[str, int]:
    """The facts that an earlier summary's ledger lists, and where they were last seen."""
    return {fact: line.newest for line in lines for fact in line.wording.facts}


def _about_facts(lines: Iterable[Line], facts: Sequence[Fact]) -> Iterator[Line]:
    """What is the first to tell of facts that are likely to be needed again weighs the more."""
    usual = sum(fact.worth for fact in facts) / max(len(facts), 1)
    worth = {fact.text: fact.worth / usual for fact in facts}
    for line in lines:
        words = words_of(line.text)
        if worth.keys().isdisjoint(words):
            yield line
            continue
        # In the order of the words: a sum of fractions depends on it.
        value = sum(worth.pop(word, 0.0) for word in words)
        yield line if line.is_quote else line.weighing(line.weight + min(0.4, 0.1 * value))


def _unsaid(facts: Iterable[Fact], words: set[str]) -> list[Fact]:
    """The facts that none of the words names, not even inside of a longer one."""
    together = " ".join(words)
    return [fact for fact in facts if fact.text not in words and fact.text not in together]


def _ledger(facts: Iterable[Fact], page: Page) -> Iterator[Line]:
    """The facts, as many as the page has room for."""
    room = min(page.left, int(page.room * MOST_FACTS))
    listed: dict[Sort, list[Fact]] = {sort: [] for sort in Sort}
    for fact in facts:
        cost = len(fact.text) + _BETWEEN
        if cost <= room:
            room -= cost
            listed[fact.sort].append(fact)
    for sort, some in listed.items():
        yield from _rows(sort, sorted(some, key=attrgetter("newest")))


def _rows(sort: Sort, facts: Sequence[Fact]) -> Iterator[Line]:
    """Facts of one sort, as many a row as a line has room for together with its handles."""
    rows: list[list[tuple[str, int]]] = []
    length, most = LIST_ROW, LIST_ROW - _HANDLES
    for fact in facts:
        said = folded(fact.text)
        length += _BETWEEN + len(said)
        if length > most:
            rows.append([])
            length = len(f"{sort}: ") + len(said)
        rows[-1].append((said, fact.newest))
    for row in rows:
        text = f"{sort}: {', '.join(said for said, _ in row)}"
        # Another writer's summary need not say where it took a fact from.
        handles = Ranges.of(newest for _, newest in row if newest)
        yield Line(Section.CONTEXT, text, handles)
