"""What models wrote for replays, each text by a digest of all that it was asked for."""

from pathlib import Path

from pydantic import TypeAdapter

from ....domain.summaries.summarizer import Draft
from ...storage.sqlite.checked_cache import CheckedCache, find_cache_file

SummaryCache = CheckedCache[Draft]
_REMEDY = "name another file with --cache, which replays take"
_DRAFT = TypeAdapter(Draft)


def open_summary_cache(path: Path | None) -> SummaryCache:
    """The cache in that file, or in the user's cache folder; raises CacheFileError."""
    return CheckedCache(path or find_cache_file("summaries.db"), _DRAFT, _REMEDY)
