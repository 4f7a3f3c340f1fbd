"""The inner rings touch nothing of the world, and no import goes in a circle.

import-linter holds the layers.
"""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from grimp import ImportGraph, build_graph

ROOT = Path(__file__).parents[1]
INNER_RINGS = ("domain", "projections")
MAY_IMPORT = {
    *("abc", "array", "base64", "bisect", "collections", "contextlib", "copy", "dataclasses"),
    *("datetime", "difflib", "enum", "functools", "hashlib", "heapq", "imagesize", "io"),
    *("itertools", "json", "math", "operator", "orjson", "pydantic", "pydantic_core", "re"),
    *("statistics", "string", "struct", "textwrap", "types", "typing", "unicodedata", "uuid"),
}
"""What the inner rings may import: it neither reads nor changes anything of the world."""
TYPES_OF_CLIENTS = {"cutbank.projections.rendering.catalog": {"anthropic", "openai"}}
"""Looked up by type checkers alone; `test_importing_cutbank_loads_nothing_heavy` proves it."""
POSSESSIVE_GROUP = re.compile(r"\)[?*+]\+")
CLOCKS = {"now", "utcnow", "today"}
ASK_THE_WORLD = {"__import__", "input", "open", "print"}
LOADED_ON_DEMAND = {
    *("anthropic", "apscheduler", "eventsourcing", "genai_prices", "imagesize", "jinja2"),
    *("openai", "opentelemetry", "orjson", "pydantic", "pydantic_ai", "pydantic_settings", "rich"),
    *("sqlite3", "tiktoken", "typer"),
}


@pytest.fixture(scope="module")
def graph() -> ImportGraph:
    """All imports, also those inside functions and for types."""
    return build_graph("cutbank", include_external_packages=True)


def test_the_inner_rings_import_only_what_is_pure(graph: ImportGraph) -> None:
    modules = [one for one in graph.modules if one.removeprefix("cutbank.").startswith(INNER_RINGS)]

    outside = [
        f"{module} imports {imported}"
        for module in modules
        for imported in graph.find_modules_directly_imported_by(module)
        if not imported.startswith("cutbank.")
        and imported not in MAY_IMPORT | TYPES_OF_CLIENTS.get(module, set())
    ]

    assert len(modules) > 50
    assert not outside


def find_questions(source: str) -> Iterator[str]:
    """Yield each place that reads a clock or asks the world: `datetime.now`, `open`."""
    nodes = list(ast.walk(ast.parse(source)))
    imported = [
        name
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    ]
    dates = {"date", "datetime"}
    dates |= {name.asname for name in imported if name.asname and name.name in dates}
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr=name) if (
                owner in dates and name in CLOCKS
            ):
                yield f"{node.lineno}: {owner}.{name}"
            case ast.Call(func=ast.Name(id=name)) if name in ASK_THE_WORLD:
                yield f"{node.lineno}: {name}"
            case _:
                pass


def test_the_inner_rings_ask_neither_a_clock_nor_the_world() -> None:
    questions = {
        "from datetime import datetime\nat = datetime.now(UTC)": 1,
        "from datetime import datetime as d\nfield(factory=d.utcnow)": 1,
        "import datetime as dt\nat = dt.date.today()": 1,
        "lines = open('session.jsonl')": 1,
        "idle = window.now - window.last": 0,
    }
    assert {source: len(list(find_questions(source))) for source in questions} == questions

    files = [file for ring in INNER_RINGS for file in (ROOT / ring).rglob("*.py")]
    found = {file: list(find_questions(file.read_text(encoding="utf-8"))) for file in files}
    assert not {file: questions for file, questions in found.items() if questions}


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


def test_no_module_imports_what_imports_it(graph: ImportGraph) -> None:
    sorter = TopologicalSorter(
        {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    )

    try:
        sorter.prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_no_group_is_repeated_possessively() -> None:
    """Python before 3.11.5 backtracks into such a group; an atomic group works everywhere."""
    sources = [
        path
        for part in ("domain", "projections", "adapters")
        for path in (ROOT / part).rglob("*.py")
    ]

    assert sources
    assert not [path for path in sources if POSSESSIVE_GROUP.search(path.read_text("utf-8"))]
