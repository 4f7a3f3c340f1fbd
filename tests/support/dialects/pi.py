"""A compaction as pi writes it: the entry of its session file, and what its extensions are told."""

from collections.abc import Callable
from datetime import UTC
from typing import Any

from pi_preparation import PiPreparation

from cutbank.domain.compaction_events import CompactBoundary, Digest, Summary

Named = Callable[[int], str]
"""The id of the entry that holds a block, by its position."""


def details(digest: Digest) -> dict[str, Any]:
    """The files that were read and modified in all that left so far."""
    return {
        "readFiles": list(digest.read_files),
        "modifiedFiles": list(digest.modified_files),
    }


def compaction_entry(
    boundary: CompactBoundary,
    summary: Summary,
    *,
    entry_id: str,
    parent_id: str | None,
    named: Named = str,
) -> dict[str, Any]:
    """The line of a session file that stands for a boundary and its summary."""
    moment = boundary.timestamp.astimezone(UTC).isoformat(timespec="milliseconds")
    return {
        "type": "compaction",
        "id": entry_id,
        "parentId": parent_id,
        "timestamp": moment.replace("+00:00", "Z"),
        "summary": summary.text,
        "firstKeptEntryId": named(boundary.first_kept),
        "tokensBefore": boundary.pre_tokens,
        "details": details(summary.digest),
        "fromHook": False,
    }


def compaction_result(
    text: str, preparation: PiPreparation, *, named: Named = str
) -> dict[str, Any]:
    """What its `compact` gives back, before an entry is made of it."""
    return {
        "summary": text,
        "firstKeptEntryId": named(preparation.first_kept),
        "tokensBefore": preparation.tokens_before,
        "details": details(preparation.digest),
    }


def cut_point(first_kept: int, turn_start: int | None) -> dict[str, Any]:
    """Where it would cut, by the indices of its entries."""
    return {
        "firstKeptEntryIndex": first_kept,
        "turnStartIndex": -1 if turn_start is None else turn_start,
        "isSplitTurn": turn_start is not None,
    }


def context_usage(tokens: int, reported: int, since: int, last_usage: int | None) -> dict[str, Any]:
    """How full the context is; `last_usage` is the index of the message that reported it."""
    return {
        "tokens": tokens,
        "usageTokens": reported,
        "trailingTokens": since,
        "lastUsageIndex": last_usage,
    }
