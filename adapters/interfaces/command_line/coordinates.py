"""Reads and writes references to views: `main@3#120`, or a handle alone."""

from ....domain.compaction import MAIN_LINEAGE
from ....domain.errors import InvalidSettingError
from ....projections.view_content import Coordinate
from ...analysis.auditing.diffs import ViewReference, read_view_reference
from ...runtime.sessions.stored_session import StoredSession
from . import handle_parsing
from .logged_blocks import BlockLog

COORDINATE_HELP = "As it was at this position, or at a coordinate: main@3#120."


def format_place(lineage: str, version: int | None, position: int) -> str:
    """Format a reference that `diff --from` and `--at` accept."""
    return f"{lineage}{'' if version is None else f'@{version}'}#{position}"


def format_coordinate(at: Coordinate) -> str:
    return format_place(at.lineage, at.lineage_version, at.position)


def read_position(session: StoredSession, word: str) -> int:
    """Return the one position that a handle names."""
    return handle_parsing.parse_handle(word, lambda back: BlockLog(session).find_newest(back))


def read_place(session: StoredSession, word: str, lineage: str) -> ViewReference:
    """Parse a view reference; `lineage` is the default."""
    return read_view_reference(session, word, lineage, lambda at: read_position(session, at))


def read_view_place(
    session: StoredSession, word: str | None, lineage: str, version: int | None
) -> ViewReference:
    """Combine `--at`, `--lineage` and `--lineage-version` into one view reference."""
    if word is None:
        return ViewReference(lineage, version)
    if "@" not in word and "#" not in word.strip()[1:]:
        return ViewReference(lineage, version, read_position(session, word))
    named = read_place(session, word, lineage)
    if named.version is not None and version is not None:
        raise InvalidSettingError(f"{word!r} names a version: remove --lineage-version")
    if lineage not in {MAIN_LINEAGE, named.lineage}:
        raise InvalidSettingError(f"{word!r} names a lineage: remove --lineage")
    return ViewReference(
        named.lineage, version if named.version is None else named.version, named.position
    )
