"""Describes an event of a session or of its lineages in one line."""

from collections.abc import Mapping

from ....domain.compaction_events import (
    BoundaryActivated,
    CompactBoundary,
    CompactionFailed,
    CompactionOpened,
    CompactionRejected,
    CompactionRequested,
    CompactionReverted,
    PreparationDropped,
    Summary,
)
from ....domain.event import Event
from ....domain.session_events import (
    BlockPinned,
    BlocksHidden,
    BlocksRetracted,
    BlockUnpinned,
    ContextOverflowed,
    ModelCalled,
    ParentNamed,
    RequestSettingsSet,
    SessionClosed,
    SessionOpened,
    SessionTitled,
    SystemPromptSet,
    ToolsSet,
    TurnEnded,
    TurnStarted,
    WakeScheduled,
)
from ....domain.token_estimate import PromptSizeChange, SizeBasis, estimate_text
from .printing import format_count, format_handles

CompactionCounts = Mapping[int, int]
"""The number of each compaction of a lineage, from 1 on, by the version of its boundary."""


def describe_event(event: Event, counts: CompactionCounts) -> str:
    """Return one line; for an unknown event, its name."""
    return (
        _describe_session_event(event)
        or _describe_lineage_event(event, counts)
        or type(event).__name__
    )


def _describe_session_event(event: Event) -> str | None:
    match event:
        case SessionOpened(fork=None, source=None):
            return f"the session begins{_describe_parent(event)}"
        case SessionOpened(fork=None, source=source):
            return f"the session begins{_describe_parent(event)}, imported from {source}"
        case SessionOpened(fork=fork) if fork is not None:
            return f"forked from {fork.key} at #{fork.position}"
        case SessionTitled(title=title):
            return f"titled {title!r}"
        case ParentNamed(parent=parent):
            return f"works for {parent.key}"
        case SystemPromptSet(text=text):
            return f"system prompt from here on, {format_count(estimate_text(text), 'token')}"
        case ToolsSet(tools=tools):
            return f"{format_count(len(tools), 'tool')} offered from here on"
        case RequestSettingsSet(settings=settings):
            named = ", ".join(f"{name} {value}" for name, value in settings.items())
            return f"requests hold from here on: {named or 'nothing else'}"
        case TurnStarted(turn=turn):
            return f"turn {turn} begins"
        case TurnEnded(turn=turn, outcome=outcome):
            return f"turn {turn} ends" + (f": {outcome}" if outcome else "")
        case BlocksHidden(positions=positions, replacement=text):
            instead = f", and show {text!r}" if text is not None else ""
            return f"{format_handles(positions)} to be hidden from the next compaction on{instead}"
        case BlockPinned(positions=positions):
            return f"{format_handles(positions)} pinned from the next compaction on"
        case BlockUnpinned(positions=positions):
            return f"{format_handles(positions)} unpinned from the next compaction on"
        case BlocksRetracted(positions=positions, reason=reason):
            return f"{format_handles(positions)} taken back" + (f": {reason}" if reason else "")
        case ModelCalled(call_id=call):
            return f"a record of call {call} that was recorded again later"
        case ContextOverflowed(message=message):
            return f"refused as too long: {message}"
        case WakeScheduled(at=at):
            return f"goes on by itself at {at.isoformat()}" if at else "goes on by itself no more"
        case SessionClosed(reason=reason):
            return "closed" + (f": {reason}" if reason else "")
        case _:
            return None


def _describe_parent(opened: SessionOpened) -> str:
    return f", works for {opened.parent.key}" if opened.parent else ""


def _describe_lineage_event(event: Event, counts: CompactionCounts) -> str | None:
    number = event.originator_version
    match event:
        case CompactionOpened(lineage=lineage, base=None):
            return f"lineage {lineage} begins"
        case CompactionOpened(lineage=lineage, base=base) if base is not None:
            return f"lineage {lineage} begins, and continues {base.lineage} version {base.version}"
        case CompactionRequested(trigger=trigger, policy=policy, after=after):
            return f"request {number}: {policy} is to compact all up to #{after} ({trigger})"
        case CompactBoundary(pre_tokens=before, post_tokens=after):
            return describe_boundary(
                event, PromptSizeChange(before, after, SizeBasis.ESTIMATED), counts
            )
        case Summary(summariser=who, tokens=tokens, covers=covers):
            stands = f"stands for {format_handles(covers)}" if covers else "stands for nothing new"
            model = f" ({event.model})" if event.model else ""
            return f"summary by {who}{model}, {format_count(tokens, 'token')}, {stands}"
        case BoundaryActivated(boundary=boundary, effective_from=start):
            return f"compaction {counts[boundary]} is served from #{start} on"
        case PreparationDropped(boundary=boundary, reason=reason):
            return f"compaction {counts[boundary]}, which was prepared, is dropped: {reason}"
        case CompactionRejected(summariser=who, rule=rule, reason=reason):
            return f"a draft of {who} is not used, by the rule {rule}: {reason}"
        case CompactionFailed(reason=reason, stood_in=None):
            return f"the compaction failed: {reason}"
        case CompactionFailed(reason=reason, stood_in=who):
            return f"{who} stood in: {reason}"
        case CompactionReverted(boundary=boundary, to=to, effective_from=start):
            back = f"compaction {counts[to]} is served" if to else "the whole history is served"
            return f"compaction {counts[boundary]} is reverted: {back} from #{start} on"
        case _:
            return None


def describe_boundary(
    boundary: CompactBoundary, sizes: PromptSizeChange, counts: CompactionCounts
) -> str:
    count = counts[boundary.originator_version]
    who = f"{boundary.policy} ({boundary.trigger})"
    parts = [
        f"compaction {count}: {who} decides on all up to #{boundary.after}",
        f"{sizes}, keeps {format_handles(boundary.kept) or 'nothing'}",
    ]
    if boundary.pinned:
        parts.append(f"pinned {format_handles(boundary.pinned)}")
    if boundary.hidden:
        parts.append(f"hidden {format_handles(boundary.hidden)}")
    if boundary.trims:
        parts.append(f"{format_count(len(boundary.trims), 'result')} shortened")
    parts += [f"repaired by {repair.rule}" for repair in boundary.repairs]
    return "; ".join(parts)
