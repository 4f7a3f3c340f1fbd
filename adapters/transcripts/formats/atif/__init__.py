"""Reads and writes the Agent Trajectory Interchange Format, which groups events into steps."""

from ..format import Format
from .atif_reader import FORMAT_NAME, read, recognizes
from .atif_writer import write

FORMAT = Format(
    name=FORMAT_NAME,
    description="trajectories of the Agent Trajectory Interchange Format",
    recognizes=recognizes,
    read=read,
    write=write,
    suffix=".json",
)
