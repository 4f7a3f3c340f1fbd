"""kdcube's vectors as policies, windows and compactions of the product: shapes are translated."""

from collections.abc import Callable, Iterable, Sequence

from dialects import kdcube
from dialects.kdcube import TimelineCompaction
from neutral_blocks import Neutral
from neutral_timeline import timeline_window
from vector_files import Vector

from cutbank import RollingTimeline, ToolCall, ToolResult, Trigger, Window, WindowItem, get_policy
from cutbank.domain.summaries.summarizer import SummaryPart, SummaryRequest

SYNTHETIC = {SummaryPart.HISTORY: "SUM", SummaryPart.TURN: "PRE"}


def shipped(vector: Vector) -> RollingTimeline:
    turns = vector["config"]["keep_recent_turns"]
    policy = get_policy("kdcube@as_shipped", keep_recent_turns=turns)
    assert isinstance(policy, RollingTimeline)
    return policy


def window_of(vector: Vector) -> Window:
    trigger = Trigger.OVERFLOW if vector["config"]["force"] else Trigger.THRESHOLD
    return timeline_window(vector["input"], vector["config"], trigger)


def writer(vector: Vector) -> Callable[[SummaryRequest], str | None]:
    fails = {part: vector["config"][name] for part, name in FAILS.items()}
    return lambda asked: None if fails[asked.part] else SYNTHETIC[asked.part]


FAILS = {SummaryPart.HISTORY: "history_summary_fails", SummaryPart.TURN: "prefix_summary_fails"}


def compaction_of(vector: Vector) -> TimelineCompaction:
    return kdcube.compacted(window_of(vector), shipped(vector), writer(vector))


def ids(items: Iterable[WindowItem], blocks: Sequence[Neutral]) -> list[str]:
    """The vectors' names of blocks; a summary that was just written has none yet."""
    return [blocks[item.position - 1]["id"] if item.position else "SUMMARY_NEW" for item in items]


def find_orphan_results(items: Iterable[WindowItem]) -> list[WindowItem]:
    """The results that come without an earlier call among the items."""
    called: set[str] = set()
    orphans: list[WindowItem] = []
    for item in items:
        if isinstance(item.block, ToolCall):
            called.add(item.block.tool_call_id)
        elif isinstance(item.block, ToolResult) and item.block.tool_call_id not in called:
            orphans.append(item)
    return orphans
