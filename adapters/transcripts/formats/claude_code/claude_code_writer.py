"""Writes a session as Claude Code does: own entries unchanged, all others converted."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from .....domain.blocks import UNSENT_KINDS, BlockKind
from ..json_lines import encode_line
from ..outgoing import (
    OutgoingBlock,
    OutgoingCompaction,
    OutgoingPart,
    OutgoingSession,
    SourceEntry,
    group_outgoing_messages,
    merge_with_source,
)
from .entries import TITLE_FIELDS
from .entry_builder import ClaudeEntryBuilder


def write(outgoing: OutgoingSession) -> Iterator[bytes]:
    builder = ClaudeEntryBuilder(outgoing)
    is_empty = True
    for line in _write_lines(outgoing, builder):
        is_empty = False
        yield line
    if is_empty:
        yield encode_line(builder.build_mode())  # an empty session still needs an entry
    _count_missing(outgoing)


def _write_lines(outgoing: OutgoingSession, builder: ClaudeEntryBuilder) -> Iterator[bytes]:
    """Yield the source's lines unchanged, and what was added at its place."""
    titles: dict[str, str] = {}
    parts = merge_with_source(outgoing)
    for own, run in groupby(parts, key=lambda part: isinstance(part, SourceEntry)):
        if not own:
            for message in group_outgoing_messages(_select_foreign(outgoing, run)):
                if isinstance(message, OutgoingCompaction):
                    built = builder.build_compaction(message)
                else:
                    built = builder.build_message(message)
                yield from map(encode_line, built)
            continue
        for part in run:
            assert isinstance(part, SourceEntry), "they are grouped by that"
            if isinstance(entry := part.value, dict):
                builder.follow_entry(entry, part.own_blocks)
                if kind := TITLE_FIELDS.get(str(entry.get("type"))):
                    titles[kind] = entry.get(kind, "")
            yield part.raw
    title = titles.get(TITLE_FIELDS["custom-title"]) or titles.get(TITLE_FIELDS["ai-title"])
    if outgoing.title and outgoing.title != title:
        yield encode_line(builder.build_title(outgoing.title))


def _select_foreign(outgoing: OutgoingSession, run: Iterable[Any]) -> Iterator[OutgoingPart]:
    """Yield the parts from other sources, and count what of them is lost."""
    for part in run:
        if isinstance(part, OutgoingCompaction):
            boundary = part.boundary
            if boundary.trims and not outgoing.is_view:
                outgoing.count_loss("shortened tool results", len(boundary.trims))
            if boundary.replacements and not outgoing.is_view:
                outgoing.count_loss("replaced blocks", len(boundary.replacements))
        elif isinstance(part, OutgoingBlock) and not part.is_cancelled_result:
            if part.block.kind in UNSENT_KINDS:
                outgoing.count_loss("notes" if part.block.kind is BlockKind.NOTE else "artifacts")
            elif part.is_retracted:
                outgoing.count_loss("blocks that were retracted")
        yield part


def _count_missing(outgoing: OutgoingSession) -> None:
    if outgoing.forks:
        outgoing.count_loss("branches", len(outgoing.forks))
    if outgoing.kept_source:
        return  # the format has no place for either
    if outgoing.system_prompt:
        outgoing.count_loss("system prompts")
    if outgoing.tools:
        outgoing.count_loss("tool definitions", len(outgoing.tools))
