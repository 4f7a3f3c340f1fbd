"""Writes a summary by rules, in words from the log: it needs no model and cannot fail."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..ranges import Ranges
from ..token_estimate import CHARS_PER_TOKEN, estimate_text
from .choice import add_statements
from .clean_text import add_handles, list_cited_runs
from .earlier_summary import read_earlier_lines, split_foreign_summary
from .findings import gather_lines
from .layout import (
    PROGRESS_SECTIONS,
    SECTION_LAYOUT,
    SummaryLine,
    SummarySection,
    find_root,
    lay_out_sections,
    write_file_lists,
)
from .page import SummaryPage
from .statements import BlockReader
from .summarizer import ALWAYS_SMALL_TOKENS, Draft, Material

_SECTION_SHARES: Mapping[SummarySection, float] = {
    SummarySection.GOAL: 0.13,
    SummarySection.CONSTRAINTS: 0.15,
    SummarySection.DONE: 0.03,
    SummarySection.IN_PROGRESS: 0.02,
    SummarySection.BLOCKED: 0.03,
    SummarySection.NEXT: 0.02,
    SummarySection.CONTEXT: 0.02,
    SummarySection.DECISIONS: 0.02,
    SummarySection.TURN: 0.0,
}
"""The share of the room that each section fills first, in order; statements take the rest."""
_FILES_SHARE = 0.15
_MODIFIED_SHARE = 0.25
"""The share of the room that files may fill if the agent modified so many."""
_MIN_FILES_CHARS = 400
_MIN_CHARS_WITH_HEADINGS = 480
"""A shorter summary holds only its most important lines."""
_GLANCE_CHARS = 160


@dataclass(frozen=True)
class ExtractiveSummarizer:
    """Verbatim words chosen by rules, each with its handle; the result is deterministic."""

    name: str = "extractive"
    _reader: BlockReader = field(default_factory=BlockReader, init=False, repr=False, compare=False)

    def summarize(self, material: Material) -> Draft:
        room = CHARS_PER_TOKEN * max(0, min(material.budget, _max_useful_tokens(material)))
        sections = material.previous_sections
        parts = split_foreign_summary(sections, material.previous)
        own = {heading: body for heading, body in sections.items() if heading in SECTION_LAYOUT}
        earlier = list(read_earlier_lines(own, None, material.covers))
        if room < _MIN_CHARS_WITH_HEADINGS:
            # Another writer's handles may be wrong.
            earlier += read_earlier_lines({}, "\n".join(parts), Ranges())
        lines = gather_lines(material, earlier, self._reader)
        if room < _MIN_CHARS_WITH_HEADINGS:
            draft = _write_short(lines, room)
        else:
            draft = _write_page(parts, lines, earlier, room, material=material, reader=self._reader)
        return draft if 0 < len(draft.text) <= room else _write_empty(material, room)


def _max_useful_tokens(material: Material) -> int:
    """Return the size beyond which a summary of this material would hardly be shorter."""
    half = material.removed_tokens // 2 + estimate_text(material.previous or "")
    return min(material.max_useful_tokens, max(half, ALWAYS_SMALL_TOKENS))


def _write_short(lines: Sequence[SummaryLine], room: int) -> Draft:
    """Return the most important lines without headings, always including the first."""
    taken: list[tuple[SummaryLine, str]] = []
    ranks = {
        SummarySection.GOAL: 0,
        SummarySection.EARLIER_REQUESTS: 0,
        SummarySection.CONSTRAINTS: 1,
    }
    own = [line for line in lines if line.section is not SummarySection.TURN]
    for line in sorted(own, key=lambda line: ranks.get(line.section, 2)):
        written = line.write_within(room - len("- ") if not taken else _GLANCE_CHARS)
        cost = len(written) + len("- ") + (len("\n") if taken else 0)
        is_said = line.is_quote and any(line.text in earlier for _, earlier in taken)
        if cost <= room and not is_said:
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
    earlier: Sequence[SummaryLine],
    room: int,
    *,
    material: Material,
    reader: BlockReader,
) -> Draft:
    listed = max(int(room * _FILES_SHARE), min(_MIN_FILES_CHARS, room // 4))
    most = int(room * _MODIFIED_SHARE)
    tags = write_file_lists(material.digest, material.removed_items, listed, most)
    page = SummaryPage(room, tags)
    page.set_earlier(parts, spare=min(room // 2, material.removed_tokens * CHARS_PER_TOKEN // 2))
    page.add_shares(lines, _compute_shares(material))
    named = (*material.digest.modified_files, *material.digest.read_files)
    root = find_root(material.removed_items, named)
    add_statements(material, earlier, page, reader, root)
    page.add_shares(lines, dict.fromkeys(SummarySection, 1.0))
    page.set_earlier(parts)
    return Draft(page.text, page.sections, page.cites)


def _compute_shares(material: Material) -> dict[SummarySection, float]:
    """Return the shares of the sections, with part of the progress moved to an unfinished turn."""
    gone = material.removed_tokens
    inside = sum(item.tokens for item in material.removed_items if item.position in material.prefix)
    part = inside / gone if gone else 0.0
    divided = dict(_SECTION_SHARES)
    for section in PROGRESS_SECTIONS:
        divided[section] *= 1 - part
    turn = part * sum(_SECTION_SHARES[section] for section in PROGRESS_SECTIONS)
    return divided | {SummarySection.TURN: turn}
