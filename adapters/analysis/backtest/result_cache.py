"""Keeps results of measurements in a file, by a fingerprint of what they follow from."""

import inspect
from collections.abc import Iterable
from functools import cache
from hashlib import blake2b
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import TypeAdapter

from ....domain.backtest.cell import Cell, ControlResult, Setup
from ...settings.policy_catalog import find_package, find_policy_class
from ...storage.event_log.event_mapper import dump_json
from ...storage.sqlite.checked_cache import CheckedCache, find_cache_file
from .cells import ItemResult, TaskItem
from .grid import FIXED_DECIDERS
from .session_log import MeasuredSession

PACKAGE, ROOT = __name__.partition(".")[0], Path(__file__).parents[3]


def fingerprint_item(log: MeasuredSession, item: TaskItem) -> str | None:
    """Return the fingerprint of one item: the session, the item, and the measuring code.

    Return None if the result may differ between runs.
    """
    if isinstance(item, Setup):
        if item.summarizer == "llm":
            return None  # a model's answers differ, and are requested again
        settings = log.settings.model_dump(mode="json", include={"compaction", "pins"})
        facts = log.find_setup_facts(item)
        priced = repr(facts) if item.model else repr([facts, log.facts])
        by = [_hash_policy_code(item.policy), priced, settings]
        wanted: list[Any] = ["cell", item.model_dump(mode="json"), *by]
    else:
        wanted = ["controls", item.limit, list(item.budgets)]
    return blake2b(dump_json([log.digest, hash_own_code(), *wanted]), digest_size=16).hexdigest()


@cache
def hash_own_code() -> str:
    """Hash our own code, since a version number kept by hand would be forgotten."""
    return _hash_files(ROOT / layer for layer in ("domain", "projections", "adapters"))


@cache
def _hash_policy_code(policy: str) -> str:
    """Hash the package of a policy; return an empty hash for built-in policies."""
    if policy in FIXED_DECIDERS:
        return ""
    policy_class = find_policy_class(policy.partition("@")[0])
    module = inspect.getmodule(policy_class)
    if module is None or module.__name__.partition(".")[0] == PACKAGE:
        return ""
    return f"{find_package(policy_class)} {_hash_files([_find_code(module)])}"


def _find_code(module: ModuleType) -> Path:
    """Return the module's file, or the folder of its package."""
    file = Path(inspect.getsourcefile(module) or "")
    depth = module.__name__.count(".") + (file.name == "__init__.py")
    return file.parents[depth - 1] if depth else file


def _hash_files(paths: Iterable[Path]) -> str:
    """Hash files and all below folders: code, and the tables that the code reads."""
    digest = blake2b(digest_size=16)
    found = (file for path in paths for file in (path, *path.rglob("*")))
    for file in sorted(file for file in found if file.suffix != ".pyc" and file.is_file()):
        content = file.read_bytes()
        digest.update(dump_json([file.name, len(content)]))
        digest.update(content)
    return digest.hexdigest()


ResultCache = CheckedCache[ItemResult]
_REMEDY = "name another file with --cache, or do without by --no-cache"
_RESULT: TypeAdapter[ItemResult] = TypeAdapter(Cell | tuple[ControlResult, ...])


def open_result_cache(path: Path) -> ResultCache:
    """Open or create the cache in that file. Raises CacheFileError."""
    return CheckedCache(path, _RESULT, _REMEDY)


def find_default_cache() -> Path:
    return find_cache_file("backtests.db")
