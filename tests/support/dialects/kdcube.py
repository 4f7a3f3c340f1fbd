"""A compaction in kdcube's words: the timeline after it, its summary block, payload and hooks."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from cutbank.domain import kdcube_timeline
from cutbank.domain.blocks import AnyBlock, Block, Kind, Origin
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.inventory import MadeArtifact, find_made_artifacts, find_memory_lookups
from cutbank.domain.item import Item
from cutbank.domain.policies.rolling_timeline import RollingTimeline
from cutbank.domain.ranges import Ranges
from cutbank.domain.summaries.summarizer import Material, SummaryRequest
from cutbank.domain.window import Window
from cutbank.projections.rendering.cache_points import find_cache_points

Entry = dict[str, Any]
Writer = Callable[[SummaryRequest], str | None]
"""Answers a request for a summary; None where it failed."""

WRITERS = frozenset(
    {f"rendering_tools.write_{into}" for into in ("pdf", "pptx", "docx", "html", "png")}
    | {"infra.write"}
)
PATCHERS = (".patch", ".apply_patch")
RUNNERS = frozenset({"exec_tools.execute_code_python"})
STREAMED = frozenset({"display", "file"})


class TimelineCut(NamedTuple):
    """Where the timeline is to be cut, before any repair; in positions."""

    start: int
    """The first block of the window, after the last summary."""
    end: int
    keep: int
    first_kept: int
    turn_start: int | None
    """Where the turn begins that the cut splits; None if it splits none."""


def find_cut(policy: RollingTimeline, window: Window) -> TimelineCut | None:
    """The cut by the rules; None if no block follows the summary."""
    items = window.open_to_cut
    if not items:
        return None
    keep, at, split = policy.locate_cut(window, policy.measure_usage(window))
    turn = None if split is None else items[split].position
    return TimelineCut(items[0].position, window.after, keep, items[at].position, turn)


def find_due_cut(policy: RollingTimeline, window: Window) -> TimelineCut | None:
    """The cut if the policy is due or was requested, else None."""
    is_idle = window.trigger is Trigger.THRESHOLD and not policy.fires(window)
    return None if is_idle else find_cut(policy, window)


@dataclass(frozen=True, slots=True)
class TimelineCompaction:
    """What kdcube would make of a window: its blocks in memory, and what it would tell of it."""

    cut: TimelineCut | None
    """None where it looks for no place to cut at."""
    asked: tuple[SummaryRequest, ...]
    blocks: tuple[Item, ...]
    """The timeline in memory; the new summary is the one whose position is 0."""
    summary: Entry | None
    """The new summary's block; None where nothing was compacted."""
    payload: Entry | None
    """What is handed to `save_summary`, but for the time."""

    @property
    def visible(self) -> tuple[Item, ...]:
        """What is rendered, and what a persisted timeline begins with."""
        return visible(self.blocks)


def compacted(
    window: Window, policy: RollingTimeline, write: Writer, *, runtime_turn: str = ""
) -> TimelineCompaction:
    """Compact as the original would: by the raw cut, and not at all where a writer fails."""
    before = in_memory(window)
    cut = find_due_cut(policy, window)
    if cut is None or cut.first_kept <= cut.start:
        return TimelineCompaction(cut, (), before, None, None)
    gone = tuple(item for item in window.open_to_cut if item.place < cut.first_kept)
    material = _material(window, policy, gone, cut)
    form = policy.make_template(cut.first_kept if cut.turn_start is None else cut.turn_start)
    asked = form.plan_requests(material)
    texts = {request.part: text for request in asked if (text := write(request))}
    if len(texts) < len(asked):
        return TimelineCompaction(cut, asked, before, None, None)
    text = form.join_answers(texts, material)
    first_kept = next(item for item in window.items if item.position == cut.first_kept)
    turn = kdcube_timeline.find_turn(first_kept) or runtime_turn
    split = turn if cut.turn_start is not None else None
    entry = summary_block(text, turn, gone, split_turn=split)
    tokens = policy.sizes.count_text_tokens(text)
    new = Item(position=0, block=imported(entry), turn=first_kept.turn, tokens=tokens)
    at = before.index(first_kept)
    return TimelineCompaction(
        cut=cut,
        asked=asked,
        blocks=(*before[:at], new, *before[at:]),
        summary=entry,
        payload=save_summary(entry, gone),
    )


def summary_block(
    text: str, turn: str, gone: Sequence[Item], *, split_turn: str | None, time: str = ""
) -> Entry:
    """The summary as an entry of the timeline."""
    meta: Entry = {"covered_turn_ids": turns(gone), "compaction_digest": digest(gone)}
    if split_turn is not None:
        meta["split_turn_id"] = split_turn
    return {
        "type": kdcube_timeline.SUMMARY_TYPE,
        "author": "system",
        "turn_id": turn,
        "ts": time,
        "mime": "text/markdown",
        "path": f"su:{turn}.{kdcube_timeline.SUMMARY_TYPE}",
        "text": text,
        "meta": meta | {"turn_id": turn},
    }


def save_summary(summary: Entry, gone: Sequence[Item], *, created_at: str = "") -> Entry:
    """What is stored of a summary in the index, and nowhere else."""
    meta = summary["meta"]
    return {
        "summary": summary["text"],
        "covered_turn_ids": meta["covered_turn_ids"],
        "created_at": created_at,
        "blocks_count": len(gone),
        "split_turn": "split_turn_id" in meta,
        "split_turn_id": meta.get("split_turn_id", ""),
        "compaction_digest": meta["compaction_digest"],
    }


def turns(items: Iterable[Item]) -> list[str]:
    """The turns of the blocks, in order."""
    return list(dict.fromkeys(filter(None, map(kdcube_timeline.find_turn, items))))


def stats(before: int, after: int, blocks: int, summaries: int) -> dict[str, int]:
    """What both hooks are told, by the document."""
    return {
        "tokens_before": before,
        "tokens_after": after,
        "compacted_blocks": blocks,
        "summary_block_count": summaries,
    }


def hooks(before: int, after: int) -> list[tuple[str, dict[str, int]]]:
    """What the program itself tells them of each rendering, compacted or not."""
    saved = max(0, before - after)
    told = {"before_tokens": before, "after_tokens": after, "compacted_tokens": saved}
    return [("before", {"before_tokens": before}), ("after", told)]


# The timeline


def in_memory(window: Window) -> tuple[Item, ...]:
    """All blocks that the program still holds: what left, the summary, and what is in view."""
    standing: tuple[Item, ...] = ()
    if window.summary is not None:
        position = window.cut_start - 1
        entry = {
            "type": kdcube_timeline.SUMMARY_TYPE,
            "author": "system",
            "text": window.summary.text,
        }
        standing = (Item(position=position, block=imported(entry), turn=0, tokens=0),)
    return (*window.evicted, *standing, *window.items)


def imported(entry: Entry) -> AnyBlock:
    """A summary of the timeline as a block: a note, which no model is sent by itself."""
    rest = {name: value for name, value in entry.items() if name != "text"}
    origin = Origin(format=kdcube_timeline.TIMELINE_FORMAT, entry=json.dumps(rest))
    return Block(kind=Kind.NOTE, text=entry["text"], origin=origin)


def visible(blocks: Sequence[Item]) -> tuple[Item, ...]:
    """From the last summary on; everything where there is none."""
    summaries = [
        at for at, item in enumerate(blocks) if kdcube_timeline.is_summary_entry(item.block)
    ]
    return tuple(blocks[summaries[-1] :] if summaries else blocks)


def estimated(blocks: Iterable[Item], policy: RollingTimeline) -> int:
    """Tokens of the blocks as they show."""
    return sum(policy.sizes.iter_sizes(blocks))


def rendered(blocks: Sequence[Item]) -> tuple[Item, ...]:
    """What of the visible blocks is sent: of the hidden ones the first of each path that shows a
    text in its place."""
    hidden_paths = set[str]()
    sent = []
    for item in blocks:
        block = item.block
        if kdcube_timeline.is_hidden_entry(block):
            path = kdcube_timeline.find_path(block)
            is_first = path not in hidden_paths
            hidden_paths.add(path)
            if not (path and is_first and kdcube_timeline.find_replacement(block).strip()):
                continue
        sent.append(item)
    return tuple(sent)


def cached(blocks: Sequence[Item], *, cache_last: bool = False) -> tuple[Item, ...]:
    """The blocks behind which a cached prefix ends."""
    paths = [kdcube_timeline.find_path(item.block) for item in blocks]
    return tuple(blocks[at] for at in find_cache_points(paths, cache_last=cache_last))


# The digest


def digest(items: Sequence[Item]) -> Entry:
    """The inventory of what a summary stands for."""
    artifacts = [_artifact(one) for one in find_made_artifacts(items)]
    return {
        "artifacts": artifacts,
        "streamed_artifacts": [one for one in artifacts if _is_streamed(one)],
        "written_files": [one for one in artifacts if one["tool_id"] in WRITERS],
        "patched_files": [one for one in artifacts if one["tool_id"].endswith(PATCHERS)],
        "exec_outputs": [one for one in artifacts if one["tool_id"] in RUNNERS],
        "memory_read": [
            {
                "tool_call_id": kdcube_timeline.find_call(one.call.block),
                "tool_id": one.tool,
                **_when(one.call),
                "query": one.arguments.get("query"),
                "targets": one.arguments.get("targets"),
                "top_k": one.arguments.get("top_k"),
                "days": one.arguments.get("days"),
                "hits_count": len(one.hits),
                "turn_ids": list(one.turns),
                "paths": list(one.paths),
            }
            for one in find_memory_lookups(items)
        ],
        "hidden_blocks": [
            {
                "path": kdcube_timeline.find_path(item.block),
                "type": kdcube_timeline.find_type(item.block),
                **_when(item),
                "mime": kdcube_timeline.find_mime(item.block),
                "replacement_text": kdcube_timeline.find_replacement(item.block),
            }
            for item in items
            if kdcube_timeline.is_hidden_entry(item.block)
        ],
    }


def _artifact(one: MadeArtifact) -> Entry:
    told = one.fields
    return {
        **_when(one.result),
        "artifact_path": told.get("artifact_path") or "",
        "physical_path": told.get("physical_path") or "",
        "mime": told.get("mime") or "",
        "kind": told.get("kind") or "",
        "visibility": told.get("visibility") or "",
        "tool_id": one.tool,
        "tool_call_id": kdcube_timeline.find_call(one.result.block),
        "sources_used": told.get("sources_used") or [],
    }


def _is_streamed(artifact: Entry) -> bool:
    return artifact["visibility"] == "external" and artifact["kind"] in STREAMED


def _when(item: Item) -> Entry:
    return {"turn_id": kdcube_timeline.find_turn(item), "ts": kdcube_timeline.find_time(item.block)}


def _material(
    window: Window, policy: RollingTimeline, gone: tuple[Item, ...], cut: TimelineCut
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
