"""Reads and writes opencode session exports, with compactions and sub-agents."""

from ..format import make_document_format
from .message_parts import FORMAT_NAME
from .opencode_reader import is_export, read_export
from .opencode_writer import write

FORMAT = make_document_format(
    FORMAT_NAME, "exported sessions of opencode", is_export, read_export, write
)
