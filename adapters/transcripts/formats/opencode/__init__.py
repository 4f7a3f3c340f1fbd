"""Reads and writes opencode session exports, with compactions and sub-agents."""

from ..format import Format
from .message_parts import FORMAT_NAME
from .opencode_reader import read, recognizes
from .opencode_writer import write

FORMAT = Format(
    name=FORMAT_NAME,
    description="exported sessions of opencode",
    recognizes=recognizes,
    read=read,
    write=write,
    suffix=".json",
)
