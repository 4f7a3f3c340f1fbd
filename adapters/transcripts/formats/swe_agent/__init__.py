"""Reads and writes SWE-agent trajectories of all versions, one per file."""

from ..format import Format
from . import swe_agent_reader, swe_agent_writer

FORMAT = Format(
    name=swe_agent_reader.FORMAT_NAME,
    description="trajectories of SWE-agent",
    recognizes=swe_agent_reader.recognizes,
    read=swe_agent_reader.read,
    write=swe_agent_writer.write,
    suffix=".traj",
)
