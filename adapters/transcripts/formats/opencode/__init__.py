"""opencode's session exports: one JSON document, with its compactions and sub-agents."""

from ..format import Format
from .names import NAME
from .reader import read, recognises
from .writer import write

FORMAT = Format(
    name=NAME,
    what="exported sessions of opencode",
    recognises=recognises,
    read=read,
    write=write,
    suffix=".json",
)
