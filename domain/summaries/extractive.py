"""Writes a summary by rules, in words from the log: it needs no model and cannot fail."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from ..ranges import Ranges
from ..token_estimate import CHARS_PER_TOKEN, estimate_text
from .candidates import find_stems, gather_candidates, iter_excerpts, sort_by_weight
from .clean_text import add_handles, fold_lines, list_cited_runs
from .earlier_summary import read_earlier_lines, split_foreign_summary
from .facts import FactKind, SummaryFact, find_fact_words, rank_facts
from .file_lists import write_file_lists
from .gate import ALWAYS_SMALL_TOKENS, compute_max_useful_tokens
from .layout import (
    PROGRESS_SECTIONS,
    SECTION_LAYOUT,
    SummaryLine,
    SummarySection,
    lay_out_sections,
)
from .memo import Memo
from .page import LIST_ROW_CHARS, SummaryPage
from .summarizer import Draft, Material

_SECTION_SHARES: Mapping[SummarySection, float] = {
    SummarySection.GOAL: 0.18,
    SummarySection.CONSTRAINTS: 0.10,
    SummarySection.DONE: 0.15,
    SummarySection.IN_PROGRESS: 0.04,
    SummarySection.BLOCKED: 0.06,
    SummarySection.DECISIONS: 0.12,
    SummarySection.NEXT: 0.05,
    SummarySection.TURN: 0.0,
    SummarySection.CONTEXT: 0.05,
}
"""The share of the room that each section fills first, in order."""
_FILES_SHARE = 0.18
_FACTS_SHARE = 0.35
_LEDGER_SHARE = 0.15
"""Room for the lists of files, for all facts, and for the facts without a line."""
_MIN_CHARS_WITH_HEADINGS = 480
"""A shorter summary holds only its most important lines."""
_GLANCE_CHARS = 160
_MAX_FACTS_SHARE = 0.25
_SEPARATOR_CHARS = len(", ")
_HANDLES_CHARS = 36
"""The most characters of a fact line's handles."""


@dataclass(frozen=True)
class ExtractiveSummarizer:
    """Verbatim words chosen by rules, each with its handle; the result is deterministic."""

    name: str = "extractive"
    _memo: Memo = field(default_factory=Memo, init=False, repr=False, compare=False)

    def summarize(self, material: Material) -> Draft:
        room = CHARS_PER_TOKEN * max(0, min(material.budget, _max_useful_tokens(material)))
        sections = material.previous_sections
        parts = split_foreign_summary(sections, material.previous)
        own = {heading: body for heading, body in sections.items() if heading in SECTION_LAYOUT}
        earlier = list(read_earlier_lines(own, None, material.covers, self._memo))
        if room < _MIN_CHARS_WITH_HEADINGS:
            # Another writer's handles may be wrong.
            earlier += read_earlier_lines({}, "\n".join(parts), Ranges(), self._memo)
        told = [line for line in earlier if not line.facts]
        lines = gather_candidates(material, told, self._memo)
        if room < _MIN_CHARS_WITH_HEADINGS:
            draft = _write_short(lines, room)
        else:
            facts = rank_facts(
                material.removed_items,
                # The facts in an earlier summary, and where each was last seen.
                {fact: line.newest for line in earlier for fact in line.facts},
                self._memo,
                find_stems(material.instructions or ""),
            )
            draft = _write_page(parts, lines, facts, room, material=material, memo=self._memo)
        return draft if 0 < len(draft.text) <= room else _write_empty(material, room)


def _max_useful_tokens(material: Material) -> int:
    """Return the size beyond which a summary of this material would hardly be shorter."""
    gone = sum(item.tokens for item in material.removed_items)
    return min(
        compute_max_useful_tokens(material),
        max(gone // 2 + estimate_text(material.previous or ""), ALWAYS_SMALL_TOKENS),
    )


def _write_short(lines: Sequence[SummaryLine], room: int) -> Draft:
    """Return the most important lines without headings, always including the first."""
    taken: list[tuple[SummaryLine, str]] = []
    ranks = {SummarySection.GOAL: 0, SummarySection.CONSTRAINTS: 1}
    own = [line for line in lines if line.section is not SummarySection.TURN]
    for line in sorted(own, key=lambda line: ranks.get(line.section, 2)):
        written = line.write_within(room - len("- ") if not taken else _GLANCE_CHARS)
        cost = len(written) + len("- ") + (len("\n") if taken else 0)
        if cost <= room:
            taken.append((line, written))
            room -= cost
    taken.sort(key=lambda taken: taken[0].newest)
    return Draft(
        "\n".join(f"- {written}" for _, written in taken),
        lay_out_sections((line.section, written) for line, written in taken),
        Ranges(run for line, _ in taken for run in list_cited_runs(line.handles)),
    )


def _write_empty(material: Material, room: int) -> Draft:
    """Return a draft for blocks without words, or for a room too small for any."""
    cited = Ranges(list_cited_runs(material.covers))
    text = add_handles("Nothing to quote", cited)
    return Draft(text, cites=cited) if len(text) <= room else Draft("-"[:room])


def _write_page(
    parts: Sequence[str],
    lines: Sequence[SummaryLine],
    facts: Sequence[SummaryFact],
    room: int,
    *,
    material: Material,
    memo: Memo,
) -> Draft:
    page = SummaryPage(room)
    page.add_tags(
        write_file_lists(material.digest, material.removed_items, int(room * _FILES_SHARE))
    )
    if parts:
        gone = sum(item.tokens for item in material.removed_items)
        page.add_earlier(parts, page.left - min(room // 2, gone * CHARS_PER_TOKEN // 2))
    lines = sort_by_weight(_weigh_by_facts(lines, facts, memo))
    rest = page.add_shares(lines, _compute_shares(material))
    rest = page.add(rest, spare=int(room * _FACTS_SHARE))
    facts, length = _filter_unsaid_facts(facts, page.collect_words()), page.line_count
    page.add(iter_excerpts(facts, material.removed_items, memo), spare=int(room * _LEDGER_SHARE))
    page.add(_iter_ledger_lines(_filter_unsaid_facts(facts, page.collect_words(length)), page))
    page.add(rest)
    page.add_earlier(parts, page.left)
    return Draft(page.text, page.sections, page.cites)


def _compute_shares(material: Material) -> dict[SummarySection, float]:
    """Return the shares of the sections, with part of the progress moved to an unfinished turn."""
    gone = sum(item.tokens for item in material.removed_items)
    inside = sum(item.tokens for item in material.removed_items if item.position in material.prefix)
    part = inside / gone if gone else 0.0
    divided = dict(_SECTION_SHARES)
    for section in PROGRESS_SECTIONS:
        divided[section] *= 1 - part
    turn = part * sum(_SECTION_SHARES[section] for section in PROGRESS_SECTIONS)
    return divided | {SummarySection.TURN: turn}


def _weigh_by_facts(
    lines: Iterable[SummaryLine], facts: Sequence[SummaryFact], memo: Memo
) -> Iterator[SummaryLine]:
    """Raise the weight of lines that are the first to name facts likely to be needed again."""
    usual = sum(fact.worth for fact in facts) / max(len(facts), 1)
    worth = {fact.text: fact.worth / usual for fact in facts}
    find_words = memo.cache_words(find_fact_words)
    for line in lines:
        words = find_words(line.text)
        if worth.keys().isdisjoint(words):
            yield line
            continue
        # Keep the order of the words: a floating-point sum depends on it.
        value = sum(worth.pop(word, 0.0) for word in words)
        yield line if line.is_quote else line.with_weight(line.weight + min(0.4, 0.1 * value))


def _filter_unsaid_facts(facts: Iterable[SummaryFact], words: set[str]) -> list[SummaryFact]:
    """Return the facts that none of the words names, not even inside a longer one."""
    together = " ".join(words)
    return [fact for fact in facts if fact.text not in words and fact.text not in together]


def _iter_ledger_lines(facts: Iterable[SummaryFact], page: SummaryPage) -> Iterator[SummaryLine]:
    room = min(page.left, int(page.room * _MAX_FACTS_SHARE))
    listed: dict[FactKind, list[SummaryFact]] = {sort: [] for sort in FactKind}
    for fact in facts:
        cost = len(fact.text) + _SEPARATOR_CHARS
        if cost <= room:
            room -= cost
            listed[fact.kind].append(fact)
    for sort, some in listed.items():
        yield from _iter_rows(sort, sorted(some, key=attrgetter("newest")))


def _iter_rows(sort: FactKind, facts: Sequence[SummaryFact]) -> Iterator[SummaryLine]:
    """Yield lines of facts of one kind, as many to a line as fit together with their handles."""
    rows: list[list[tuple[str, int]]] = []
    length, most = LIST_ROW_CHARS, LIST_ROW_CHARS - _HANDLES_CHARS
    for fact in facts:
        said = fold_lines(fact.text)
        length += _SEPARATOR_CHARS + len(said)
        if length > most:
            rows.append([])
            length = len(f"{sort}: ") + len(said)
        rows[-1].append((said, fact.newest))
    for row in rows:
        text = f"{sort}: {', '.join(said for said, _ in row)}"
        # Another writer's summary may not say where a fact came from.
        handles = Ranges.of(newest for _, newest in row if newest)
        yield SummaryLine(SummarySection.CONTEXT, text, handles)
