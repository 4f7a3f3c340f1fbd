"""Names a measurement by all that it follows from, so that it need not be made twice."""

import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from ....domain.backtest.cell import Setup
from ....domain.models import ModelFacts
from ...settings.policy_catalog import package_of, policy_class_named
from ...settings.settings import Settings
from ...storage.event_log.event_mapper import dumps
from .errands import Item
from .grid import UNDECIDING

PACKAGE = __name__.partition(".")[0]
OURS = ("domain", "projections", "adapters/backtest", "adapters/compacting", "adapters/replaying")
"""Where the code stands that decides what a measurement comes to."""


UNKNOWABLE = "llm"
"""The summariser of whose answers no fingerprint knows: they are asked for again."""


def fingerprint(
    digest: str,
    item: Item,
    facts: ModelFacts | None,
    settings: Settings,
    others: Mapping[str, ModelFacts | None] = MappingProxyType({}),
) -> str | None:
    """Of one item of one session: the session, what is wanted, and the code that measures it.

    `others` maps other models that were called to what they cost.

    None where the same may come to something else another time.
    """
    if isinstance(item, Setup):
        if item.summariser == UNKNOWABLE:
            return None
        terms = settings.model_dump(mode="json", include={"compaction", "pins"})
        priced = repr(facts) if item.model else repr([facts, dict(others)])
        by = [_code_of(item.policy), priced, terms]
        wanted: list[Any] = ["cell", item.model_dump(mode="json"), *by]
    else:
        wanted = ["controls", item.limit, list(item.budgets)]
    return blake2b(dumps([digest, measuring_code(), *wanted]), digest_size=16).hexdigest()


@cache
def measuring_code() -> str:
    """Of our own code that measures: a number kept by hand would be forgotten."""
    root = Path(__file__).parents[2]
    return _digest(file for part in OURS for file in _below(root / part))


@cache
def _code_of(policy: str) -> str:
    """Of the package that brings a policy; nothing for ours, whose code is in any fingerprint."""
    if policy in UNDECIDING:
        return ""
    policy_class = policy_class_named(policy.partition("@")[0])
    module = inspect.getmodule(policy_class)
    if module is None or module.__name__.partition(".")[0] == PACKAGE:
        return ""
    return f"{package_of(policy_class)} {_digest(_files_of(module))}"


def _files_of(module: ModuleType) -> Iterator[Path]:
    """The module's file, and all that its package may have it call."""
    file = Path(inspect.getsourcefile(module) or "")
    depth = module.__name__.count(".") + (file.name == "__init__.py")
    if not depth:
        yield file
        return
    yield from _below(file.parents[depth - 1])


def _below(folder: Path) -> Iterator[Path]:
    """Its code, and the tables that the code reads."""
    return (file for file in folder.rglob("*") if file.suffix != ".pyc" and file.is_file())


def _digest(files: Iterator[Path]) -> str:
    digest = blake2b(digest_size=16)
    for file in sorted(files):
        content = file.read_bytes()
        digest.update(dumps([file.name, len(content)]))
        digest.update(content)
    return digest.hexdigest()
