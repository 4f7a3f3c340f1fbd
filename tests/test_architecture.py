"""The arrows point one way, and the inner rings touch nothing of the world."""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PurePosixPath

import pytest
from grimp import build_graph

ROOT = Path(__file__).parents[1]

MAY_IMPORT = {
    "domain": {"domain"},
    "projections": {"domain", "projections"},
    "adapters": {"domain", "projections", "adapters"},
}
PURE = {"domain", "projections"}
TYPES_OF_CLIENTS = {"projections/rendering/request_bodies.py": {"anthropic", "openai"}}
"""Looked up by type checkers alone; `test_importing_the_package_is_light` sees what is loaded."""
WORLD = {
    "anthropic",
    "apscheduler",
    "asyncio",
    "click",
    "concurrent",
    "ctypes",
    "genai_prices",
    "http",
    "httpx",
    "importlib",  # an import by name would pass this test unseen
    "litellm",
    "logging",
    "multiprocessing",
    "openai",
    "opentelemetry",
    "os",
    "platformdirs",
    "psycopg",
    "pydantic_ai",
    "random",
    "requests",
    "rich",
    "secrets",
    "select",
    "shutil",
    "signal",
    "socket",
    "sqlite3",
    "sqlite_utils",
    "ssl",
    "subprocess",
    "tempfile",
    "threading",
    "tiktoken",
    "time",
    "typer",
    "urllib",
}
CLOCKS = {"now", "utcnow", "today"}
ASK_THE_WORLD = {"__import__", "input", "open", "print"}

LOADED_ON_DEMAND = {
    "anthropic",
    "apscheduler",
    "eventsourcing",
    "imagesize",
    "jinja2",
    "openai",
    "opentelemetry",
    "genai_prices",
    "orjson",
    "pydantic",
    "pydantic_ai",
    "rich",
    "sqlite3",
    "tiktoken",
    "typer",
}


def violations(path: PurePosixPath, source: str) -> list[str]:
    """What `source`, kept at `path` below the root, may not do."""
    ring = path.parts[0]
    tree = ast.parse(source)
    found: list[str] = []
    for line, module in imports(path, tree):
        top, _, rest = module.partition(".")
        inner = rest.partition(".")[0]
        outward = top == "cutbank" and inner not in MAY_IMPORT[ring]
        is_of_world = top in WORLD - TYPES_OF_CLIENTS.get(str(path), set())
        if outward or (is_of_world and ring in PURE):
            found.append(f"{path}:{line} imports {module}")
    if ring in PURE:
        found += [f"{path}:{line} calls {name}" for line, name in questions(tree)]
    return found


def imports(path: PurePosixPath, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Each imported module by its full name, wherever in the file it is imported."""
    package = ("cutbank", *path.parts[:-1])
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, name.name) for name in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                start = package[: len(package) - level + 1] if level else ()
                base = ".".join((*start, *([module] if module else [])))
                if base == "cutbank":
                    yield from ((node.lineno, f"{base}.{name.name}") for name in names)
                else:
                    yield node.lineno, base
            case _:
                pass


def questions(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Each place that reads a clock or asks the world: `datetime.now`, `open`."""
    dates = {"date", "datetime"} | {
        name.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
        if name.name in {"date", "datetime"} and name.asname
    }
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(
                value=ast.Name(id=owner) | ast.Attribute(attr=owner),
                attr=name,
            ) if owner in dates and name in CLOCKS:
                yield node.lineno, f"{owner}.{name}"
            case ast.Call(func=ast.Name(id=name)) if name in ASK_THE_WORLD:
                yield node.lineno, name
            case _:
                pass


@pytest.mark.parametrize("ring", MAY_IMPORT)
def test_every_file_keeps_to_its_ring(ring: str) -> None:
    files = sorted((ROOT / ring).rglob("*.py"))

    found = [
        violation
        for file in files
        for violation in violations(
            PurePosixPath(file.relative_to(ROOT).as_posix()),
            file.read_text(encoding="utf-8"),
        )
    ]

    assert files
    assert not found, "\n".join(found)


OFFENCES = [
    ("domain/session.py", "from ..projections.history_view import HistoryView"),
    ("domain/session.py", "from .. import adapters"),
    ("domain/session.py", "import cutbank.adapters.storage.sqlite.sqlite_recorder"),
    ("domain/session.py", "from cutbank import SessionStore"),
    ("domain/policies/catalog.py", "from ...adapters import settings"),
    ("domain/session.py", "def late():\n    from time import monotonic"),
    ("domain/session.py", "if TYPE_CHECKING:\n    from sqlite3 import Connection"),
    ("domain/session.py", "from datetime import datetime\nat = datetime.now(UTC)"),
    ("domain/event.py", "from datetime import datetime as d\nfield(factory=d.utcnow)"),
    ("domain/event.py", "import datetime as dt\nat = dt.date.today()"),
    ("projections/replay.py", "import os.path"),
    ("projections/rendering/text.py", "import rich"),
    ("projections/replay.py", "lines = open('session.jsonl')"),
    ("adapters/event_log/event_store.py", "from cutbank.tests import conftest"),
]
ALLOWED = [
    ("domain/session.py", "from .blocks import Block\nfrom datetime import datetime"),
    ("domain/policies/pi.py", "from ..cut_points import legal\nimport orjson"),
    ("domain/policies/pi.py", "idle = window.now - window.last"),
    ("projections/replay.py", "from ..domain.session import Session"),
    ("adapters/event_log/event_store.py", "import sqlite3\nfrom ..projections import replay"),
    ("adapters/clock.py", "from datetime import datetime\nat = datetime.now(UTC)"),
]


def test_an_offense_is_seen_and_what_is_allowed_passes() -> None:
    def found(path: str, source: str) -> int:
        return len(violations(PurePosixPath(path), source))

    assert not [row for row in OFFENCES if found(*row) != 1]
    assert not [row for row in ALLOWED if found(*row)]


def test_importing_cutbank_loads_nothing_heavy(tmp_path: Path) -> None:
    code = "import json, sys; import cutbank; print(json.dumps(sorted(sys.modules)))"

    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        check=True,
        env={name: value for name, value in os.environ.items() if "COVERAGE" not in name},
        text=True,
    )

    loaded = {module.partition(".")[0] for module in json.loads(done.stdout)}
    assert "cutbank" in loaded
    assert not loaded & LOADED_ON_DEMAND


def test_no_module_imports_what_imports_it() -> None:
    # Imports inside functions and for types are counted; the layers are held by import-linter.
    graph = build_graph("cutbank")
    sorter = TopologicalSorter(
        {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    )

    try:
        sorter.prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))
