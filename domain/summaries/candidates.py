"""Gathers and ranks every line that a summary could hold, from blocks and the last summary."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ..item import Item
from ..ranges import Ranges
from .actions import iter_actions
from .findings import (
    LOW_WEIGHT,
    is_resolved,
    iter_media,
    iter_plans,
    iter_progress,
    iter_remarks,
    iter_requests,
    iter_rules,
)
from .layout import PROGRESS_SECTIONS, SummaryLine, SummarySection, merge_lines
from .memo import Memo
from .summarizer import Material

_WORD = re.compile(r"\w{4,}")
_STEM = 6


def gather_candidates(
    material: Material, earlier: Sequence[SummaryLine], memo: Memo
) -> list[SummaryLine]:
    """Return all lines but those of facts, by weight."""
    items = material.removed_items
    actions = list(iter_actions(items, memo))
    goals = [line for line in earlier if line.section is SummarySection.GOAL]
    new = [
        *iter_rules(items, goals, memo),
        *iter_progress(actions),
        *iter_plans(items),
        *iter_remarks(items, memo),
        *iter_media(items),
    ]
    # What was in progress then no longer is, and newer plans replace older ones.
    past = {SummarySection.GOAL} | ({SummarySection.IN_PROGRESS} if new else set())
    past |= {SummarySection.NEXT} & {line.section for line in new}
    old = [
        line
        for line in earlier
        if line.section not in past
        and not (line.section is SummarySection.BLOCKED and is_resolved(line, actions))
    ]
    lines = [
        *_weigh_goals([*goals, *iter_requests(items, memo)]),
        *(_move_to_turn(line, material.prefix) for line in merge_lines([*old, *new])),
        *_iter_turn_requests(items, material.prefix, memo),
    ]
    wanted = find_stems(material.instructions or "")
    return sort_by_weight(_weigh_by_instruction(line, wanted) for line in lines)


def sort_by_weight(lines: Iterable[SummaryLine]) -> list[SummaryLine]:
    """Return the lines by weight, newest first among equals."""
    return sorted(lines, key=lambda line: (-line.weight, -line.newest))


def find_stems(text: str) -> frozenset[str]:
    """Return the beginnings of a text's longer words, to match texts on the same subject."""
    return frozenset(word[:_STEM] for word in _WORD.findall(text.casefold()))


def _weigh_goals(lines: Sequence[SummaryLine]) -> Iterator[SummaryLine]:
    """Yield requests with weights; the first and the latest weigh most."""
    # An earlier summary may quote one message twice; keep the longer quote.
    longest: dict[Ranges | str, SummaryLine] = {}
    for line in lines:
        key = line.handles or line.text
        longest[key] = max(longest.get(key, line), line, key=lambda line: len(line.text))
    requests = sorted(merge_lines(longest.values()), key=lambda line: line.newest)
    telling = [line for line in requests if line.weight > LOW_WEIGHT] or requests
    for number, line in enumerate(requests):
        if line is telling[0]:
            yield line.with_weight(1.0)
        elif line is telling[-1]:
            yield line.with_weight(0.95)
        elif line.weight > LOW_WEIGHT:
            yield line.with_weight(0.4 + 0.4 * number / len(requests))
        else:
            yield line


def _move_to_turn(line: SummaryLine, prefix: Ranges) -> SummaryLine:
    """Move progress within an unfinished turn to the turn's own section."""
    # Most lines are older; their newest handle rules them out.
    if line.section in PROGRESS_SECTIONS and line.newest in prefix and not line.handles - prefix:
        return replace(line, section=SummarySection.TURN)
    return line


def _iter_turn_requests(items: Iterable[Item], prefix: Ranges, memo: Memo) -> Iterator[SummaryLine]:
    begun = iter_requests((item for item in items if item.position in prefix), memo)
    if first := next(begun, None):
        yield replace(first, section=SummarySection.TURN, weight=0.85)


def _weigh_by_instruction(line: SummaryLine, wanted: frozenset[str]) -> SummaryLine:
    """Raise the weight of a line that shares words with the instruction."""
    shared = len(wanted & find_stems(line.text)) if wanted else 0
    return line.with_weight(line.weight + min(0.6, 0.3 * shared)) if shared else line
