"""What models wrote for replays, each text by a digest of all that it was asked for."""

from pathlib import Path

from pydantic import TypeAdapter

from ....domain.summaries.summariser import Draft
from ...storage.sqlite.proven_rows import ProvenRows, usual_file

SummaryCache = ProvenRows[Draft]
_REMEDY = "name another file with --cache, which replays take"
_DRAFT = TypeAdapter(Draft)


def summaries_in(path: Path | None) -> SummaryCache:
    """The cache in that file, or in the user's cache folder; raises CacheFileError."""
    return ProvenRows(path or usual_file("summaries.db"), _DRAFT, _REMEDY)
