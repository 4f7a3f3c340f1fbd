"""Reads and writes where a view is looked at: `main@3#120`, or a handle alone."""

from ....domain.compaction import MAIN
from ....domain.errors import InvalidSettingError
from ....projections.history_view import Coordinate
from ...analysis.auditing.places import Place, place_of
from ...runtime.sessions.stored_session import StoredSession
from . import handles
from .logged_blocks import BlockLog

HELP = "As it was at this position, or at a coordinate: main@3#120."


def written(lineage: str, version: int | None, position: int) -> str:
    """As `diff --from` and `--at` read it again."""
    return f"{lineage}{'' if version is None else f'@{version}'}#{position}"


def coordinate(at: Coordinate) -> str:
    """Where a view was looked at."""
    return written(at.lineage, at.lineage_version, at.position)


def position(session: StoredSession, word: str) -> int:
    """The one position that a handle names."""
    return handles.position(word, lambda back: BlockLog(session).newest(back))


def place(session: StoredSession, word: str, lineage: str) -> Place:
    """The view that a word names; `lineage` is meant where the word names none."""
    return place_of(session, word, lineage, lambda at: position(session, at))


def looked_at(session: StoredSession, word: str | None, lineage: str, version: int | None) -> Place:
    """What `--at`, `--lineage` and `--lineage-version` name together."""
    if word is None:
        return Place(lineage, version)
    if "@" not in word and "#" not in word.strip()[1:]:
        return Place(lineage, version, position(session, word))
    named = place(session, word, lineage)
    if named.version is not None and version is not None:
        raise InvalidSettingError(f"{word!r} names a version: leave --lineage-version away")
    if lineage not in {MAIN, named.lineage}:
        raise InvalidSettingError(f"{word!r} names a lineage: leave --lineage away")
    return Place(named.lineage, version if named.version is None else named.version, named.position)
