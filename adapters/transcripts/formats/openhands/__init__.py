"""Reads OpenHands conversations of its SDK, and older trajectories."""

from ..format import Format
from ..openhands import v0_reader, v1_reader

V1 = Format(
    name=v1_reader.FORMAT_NAME,
    description="conversations of the OpenHands SDK, a folder each",
    recognizes=v1_reader.recognizes,
    read=v1_reader.read,
    is_folder=True,
    home_patterns=("~/.openhands/conversations",),
)

V0 = Format(
    name=v0_reader.FORMAT_NAME,
    description="sessions of OpenHands before its SDK: trajectories, and outputs of its benchmarks",
    recognizes=v0_reader.recognizes,
    read=v0_reader.read,
    suffix=".json",
)
