"""Keeps results of measurements in a file, by a fingerprint of what they follow from."""

from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ....domain.backtest_cell import Cell, ControlResult, Setup
from ...settings.policy_catalog import find_policy_class
from ...storage.databases.checked_cache import BACKTEST_CACHE_FILE, CheckedCache, find_cache_file
from ...storage.event_log.event_mapper import dump_json
from .cells import ItemResult, MeasuredSession, TaskItem
from .grid import FIXED_DECIDERS

PACKAGE, ROOT = __name__.partition(".")[0], Path(__file__).parents[3]
LAYERS = ("domain", "projections", "adapters")


def fingerprint_item(log: MeasuredSession, item: TaskItem) -> str | None:
    """Return the fingerprint of one item: the session, the item, and the measuring code.

    Return None if the result may differ between runs.
    """
    if isinstance(item, Setup):
        if item.summarizer == "llm" or not _is_ours(item.policy):
            return None  # a model's answers differ, and so may the code of another package
        settings = log.settings.model_dump(mode="json", include={"compaction", "pins"})
        facts = log.find_setup_facts(item)
        priced = repr(facts) if item.model else repr([facts, log.facts])
        wanted: list[Any] = ["cell", item.model_dump(mode="json"), priced, settings]
    else:
        wanted = ["controls", item.limit, list(item.budgets)]
    return blake2b(dump_json([log.digest, hash_own_code(), *wanted]), digest_size=16).hexdigest()


@cache
def hash_own_code() -> str:
    """Hash our own code, since a version number kept by hand would be forgotten.

    Other files count as well: the code reads tables.
    """
    digest = blake2b(digest_size=16)
    found = (file for layer in LAYERS for file in (ROOT / layer).rglob("*"))
    for file in sorted(file for file in found if file.suffix != ".pyc" and file.is_file()):
        content = file.read_bytes()
        digest.update(dump_json([file.name, len(content)]))
        digest.update(content)
    return digest.hexdigest()


def _is_ours(policy: str) -> bool:
    """Return whether our own code decides, whose hash is part of each fingerprint."""
    name = policy.partition("@")[0]
    return name in FIXED_DECIDERS or find_policy_class(name).__module__.startswith(f"{PACKAGE}.")


ResultCache = CheckedCache[ItemResult]
_REMEDY = "name another file with --cache, or do without by --no-cache"
_RESULT: TypeAdapter[ItemResult] = TypeAdapter(Cell | tuple[ControlResult, ...])


def open_result_cache(path: Path) -> ResultCache:
    """Open or create the cache in that file. Raises CacheFileError."""
    return CheckedCache(path, _RESULT, _REMEDY)


def find_default_cache() -> Path:
    return find_cache_file(BACKTEST_CACHE_FILE)
