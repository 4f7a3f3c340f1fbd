"""A compaction as kdcube would carry it out: the timeline in memory before it and after it."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cutbank import Block, BlockKind, Material, Ranges, RollingTimeline, Trigger, Window, WindowItem
from cutbank.domain.blocks import AnyBlock, Origin
from cutbank.domain.summaries.kdcube_template import (
    SUMMARY_TYPE,
    find_turn,
    is_summary_entry,
    read_timeline_entry,
)
from cutbank.domain.summaries.summarizer import SummaryRequest

Writer = Callable[[SummaryRequest], str | None]
"""Answers a request for a summary; None where it failed."""


class TimelineCut(NamedTuple):
    """Where the timeline is to be cut, before any repair; in positions."""

    start: int
    end: int
    keep: int
    first_kept: int
    turn_start: int | None
    """Where the turn begins that the cut splits; None if it splits none."""


def find_cut(policy: RollingTimeline, window: Window) -> TimelineCut | None:
    items = window.open_to_cut
    if not items:
        return None
    keep, at, split = policy.locate_cut(items, policy.measure_usage(window))
    turn = None if split is None else items[split].position
    return TimelineCut(items[0].position, window.after, keep, items[at].position, turn)


def find_due_cut(policy: RollingTimeline, window: Window) -> TimelineCut | None:
    is_idle = window.trigger is Trigger.THRESHOLD and not policy.fires(window)
    return None if is_idle else find_cut(policy, window)


@dataclass(frozen=True)
class TimelineCompaction:
    cut: TimelineCut | None
    """None where it looks for no place to cut at."""
    asked: tuple[SummaryRequest, ...]
    blocks: tuple[WindowItem, ...]
    """The timeline in memory; the new summary is the one whose position is 0."""
    summary: str | None = None
    """None where nothing was compacted."""
    turn: str = ""


def compacted(window: Window, policy: RollingTimeline, write: Writer) -> TimelineCompaction:
    """Compact as the original would: by the raw cut, and not at all where a writer fails."""
    before = in_memory(window)
    cut = find_due_cut(policy, window)
    if cut is None or cut.first_kept <= cut.start:
        return TimelineCompaction(cut, (), before)
    gone = tuple(item for item in window.open_to_cut if item.place < cut.first_kept)
    material = _material(window, policy, gone, cut)
    form = policy.make_template(cut.first_kept if cut.turn_start is None else cut.turn_start)
    asked = form.plan_requests(material)
    texts = {request.part: text for request in asked if (text := write(request))}
    if len(texts) < len(asked):
        return TimelineCompaction(cut, asked, before)
    text = form.join_answers(texts, material)
    first_kept = next(item for item in window.items if item.position == cut.first_kept)
    at = before.index(first_kept)
    blocks = (*before[:at], WindowItem(0, summary_entry(text), first_kept.turn, 0), *before[at:])
    turn = find_turn(first_kept, read_timeline_entry(first_kept.block).known)
    return TimelineCompaction(cut, asked, blocks, text, turn)


def in_memory(window: Window) -> tuple[WindowItem, ...]:
    """All blocks that the program still holds: what left, the summary, and what is in view."""
    standing: tuple[WindowItem, ...] = ()
    if window.summary is not None:
        standing = (WindowItem(window.cut_start - 1, summary_entry(window.summary.text), 0, 0),)
    return (*window.evicted, *standing, *window.items)


def summary_entry(text: str) -> AnyBlock:
    """A summary of the timeline as a block: a note, which no model is sent by itself."""
    entry = json.dumps({"type": SUMMARY_TYPE, "author": "system"})
    return Block(kind=BlockKind.NOTE, text=text, origin=Origin(format="kdcube", entry=entry))


def visible(blocks: Sequence[WindowItem]) -> tuple[WindowItem, ...]:
    summaries = [at for at, item in enumerate(blocks) if is_summary_entry(item.block)]
    return tuple(blocks[summaries[-1] :] if summaries else blocks)


def _material(
    window: Window, policy: RollingTimeline, gone: tuple[WindowItem, ...], cut: TimelineCut
) -> Material:
    positions = Ranges.of(item.position for item in gone)
    split = Ranges() if cut.turn_start is None else Ranges.span(cut.turn_start, cut.first_kept - 1)
    return Material(
        removed_items=gone,
        covers=positions,
        prefix=positions & split,
        budget=policy.summary_tokens,
        turn_budget=policy.turn_summary_tokens,
        previous=window.summary.text if window.summary else None,
    )
