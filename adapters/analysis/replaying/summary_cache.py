"""Keeps the texts that models wrote for replays, by a digest of the request."""

from pathlib import Path

from pydantic import TypeAdapter

from ....domain.summaries.summarizer import Draft
from ...storage.sqlite.checked_cache import CheckedCache, find_cache_file

SummaryCache = CheckedCache[Draft]
_REMEDY = "name another file with --cache, which replays take"
_DRAFT = TypeAdapter(Draft)


def open_summary_cache(path: Path | None) -> SummaryCache:
    """Open the cache in that file, or in the user's cache folder. Raises CacheFileError."""
    return CheckedCache(path or find_cache_file("summaries.db"), _DRAFT, _REMEDY)
