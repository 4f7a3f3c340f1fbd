"""OpenHands: conversations of its SDK, and trajectories of the versions before it."""

from ..format import Format
from . import v0_reader, v0_writer, v1_reader, v1_writer

V1 = Format(
    name=v1_reader.NAME,
    what="conversations of the OpenHands SDK, a folder each",
    recognises=v1_reader.recognises,
    read=v1_reader.read,
    write_folder=v1_writer.write_folder,
    homes=("~/.openhands/conversations",),
)

V0 = Format(
    name=v0_reader.NAME,
    what="sessions of OpenHands before its SDK: trajectories, and outputs of its benchmarks",
    recognises=v0_reader.recognises,
    read=v0_reader.read,
    write=v0_writer.write,
    suffix=".json",
)
