"""SWE-agent: trajectories, a file each, from its first versions on."""

from ..format import Format
from . import reader, writer

FORMAT = Format(
    name=reader.NAME,
    what="trajectories of SWE-agent",
    recognises=reader.recognises,
    read=reader.read,
    write=writer.write,
    suffix=".traj",
)
