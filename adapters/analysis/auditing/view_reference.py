"""Parses references to views: a lineage, a version and a position, each optional."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from ....domain.compaction import MAIN_LINEAGE
from ....domain.errors import InvalidPositionError
from ...runtime.sessions.stored_session import StoredSession

REFERENCE_SYNTAX = "write [LINEAGE][@VERSION][#POSITION], as main@3#120, or recorded, or #120"
_REFERENCE = re.compile(
    r"(?P<lineage>.*?)(?:@(?P<version>[0-9]{1,15}))?(?:#(?P<position>last(?:-[0-9]+)?|[0-9]{1,15}))?",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class ViewReference:
    """A reference to a view; None means the newest."""

    lineage: str = MAIN_LINEAGE
    version: int | None = None
    """Version 0 is a lineage without decisions: all of the log."""
    position: int | None = None

    @classmethod
    def parse(
        cls, text: str, lineage: str = MAIN_LINEAGE, position: Callable[[str], int] = int
    ) -> "ViewReference":
        """Parse a reference; `lineage` is used if the text names none.

        `position` parses the part after `#`. Raises InvalidPositionError.
        """
        found = _REFERENCE.fullmatch(text.strip())
        if found is None or not text.strip() or "#" in found["lineage"]:
            raise InvalidPositionError(f"{text!r} names no view: {REFERENCE_SYNTAX}")
        at = found["position"]
        return cls(
            lineage=found["lineage"] or lineage,
            version=int(found["version"]) if found["version"] else None,
            position=position(at) if at else None,
        )


def read_view_reference(
    session: StoredSession, named: str, lineage: str, position: Callable[[str], int] = int
) -> ViewReference:
    """Return the view reference of `named`; an existing lineage may have any name."""
    return (
        ViewReference(named)
        if named in session.log.lineages
        else ViewReference.parse(named, lineage, position)
    )
