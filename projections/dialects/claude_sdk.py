"""A compaction as the Claude Agent SDK says it: a boundary's message, and what hooks are given."""

from typing import Any
from uuid import UUID, uuid5

from ...domain.compaction_events import CompactBoundary, Trigger

CUT_OFF = "\n... [output truncated]"
"""What the original writes behind the beginning of a shortened result."""


def said_trigger(trigger: Trigger | None) -> str:
    """`manual` where a person asked for it, `auto` else."""
    return "manual" if trigger is Trigger.MANUAL else "auto"


def boundary_uuid(lineage: UUID, boundary: int) -> str:
    """The same for one boundary whenever it is asked for, and another for each."""
    return str(uuid5(lineage, str(boundary)))


def compact_boundary(
    session: str, *, lineage: UUID, boundary: int, trigger: Trigger | None, pre_tokens: int
) -> dict[str, Any]:
    """The message that is emitted when a boundary is served (SDKCompactBoundaryMessage)."""
    return {
        "type": "system",
        "subtype": "compact_boundary",
        "compact_metadata": {"trigger": said_trigger(trigger), "pre_tokens": pre_tokens},
        "uuid": boundary_uuid(lineage, boundary),
        "session_id": session,
    }


def of_boundary(session: str, boundary: CompactBoundary) -> dict[str, Any]:
    """The message of a boundary that stands in the log."""
    return compact_boundary(
        session,
        lineage=boundary.originator_id,
        boundary=boundary.originator_version,
        trigger=boundary.trigger,
        pre_tokens=boundary.pre_tokens,
    )


def pre_compact(
    session: str, trigger: Trigger | None, custom_instructions: str | None
) -> dict[str, Any]:
    """What a hook is given before a summary is written (PreCompactHookInput)."""
    return {
        "session_id": session,
        "hook_event_name": "PreCompact",
        "trigger": said_trigger(trigger),
        "custom_instructions": custom_instructions,
    }


def session_start(session: str) -> dict[str, Any]:
    """What a hook is given once the session goes on (SessionStartHookInput)."""
    return {"session_id": session, "hook_event_name": "SessionStart", "source": "compact"}


def pruned_text(text: str, most: int) -> str:
    """A shortened result as the original shows it: so many bytes, and a mark.

    A character that is cut in two shows as replacement characters, one for each byte that is left
    of it.
    """
    beginning = text.encode("utf-8", "surrogatepass")[:most]
    whole = beginning.decode("utf-8", "ignore")
    broken = len(beginning) - len(whole.encode())
    return f"{whole}{'�' * broken}{CUT_OFF}"
