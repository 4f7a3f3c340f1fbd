"""The Agent Trajectory Interchange Format: a step for all that happens at once."""

from ..format import Format
from .reader import NAME, read, recognises
from .writer import write

FORMAT = Format(
    name=NAME,
    what="trajectories of the Agent Trajectory Interchange Format",
    recognises=recognises,
    read=read,
    write=write,
    suffix=".json",
)
