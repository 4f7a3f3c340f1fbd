"""The digest, an entry for each thing: files that were read and modified, commands, artifacts."""

from collections.abc import Iterator

from ...domain.blocks import AnyBlock, Kind, ToolCall
from ...domain.digest import SHELLS, arguments_of, bare_name, touched
from ...domain.summaries.extraction.commands import command_of

Entry = tuple[str, str]
"""A kind (`read`, `modified`, `command`, `artifact`) and what of that kind."""


def entries_of(block: AnyBlock) -> Iterator[Entry]:
    """What one block adds to the digest, each thing once."""
    if isinstance(block, ToolCall):
        touch = touched(block)
        kind = "modified" if touch.modifies else "read"
        yield from ((kind, path) for path in dict.fromkeys(touch.paths))
        if bare_name(block.name) in SHELLS and (command := command_of(arguments_of(block))):
            yield "command", command
    elif block.kind is Kind.ARTIFACT:
        yield "artifact", getattr(block, "name", None) or "unnamed"
