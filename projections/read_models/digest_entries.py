"""Lists the digest one entry at a time: files read and modified, commands, artifacts."""

from collections.abc import Iterator

from ...domain.blocks import AnyBlock, Kind, ToolCall
from ...domain.digest import SHELL_TOOLS, find_touched_files, normalize_tool_name, read_arguments
from ...domain.summaries.commands import get_command

_DigestEntry = tuple[str, str]
"""A kind (`read`, `modified`, `command`, `artifact`) and its value."""


def iter_digest_entries(block: AnyBlock) -> Iterator[_DigestEntry]:
    if isinstance(block, ToolCall):
        touch = find_touched_files(block)
        kind = "modified" if touch.modifies else "read"
        yield from ((kind, path) for path in dict.fromkeys(touch.paths))
        if normalize_tool_name(block.name) in SHELL_TOOLS and (
            command := get_command(read_arguments(block))
        ):
            yield "command", command
    elif block.kind is Kind.ARTIFACT:
        yield "artifact", getattr(block, "name", None) or "unnamed"
