"""Reads and writes mini-SWE-agent trajectories, one per file."""

from ..format import Format
from . import mini_swe_agent_reader, mini_swe_agent_writer

FORMAT = Format(
    name=mini_swe_agent_reader.FORMAT_NAME,
    description="trajectories of mini-SWE-agent",
    recognizes=mini_swe_agent_reader.recognizes,
    read=mini_swe_agent_reader.read,
    write=mini_swe_agent_writer.write,
    suffix=".traj.json",
)
