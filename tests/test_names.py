"""Names say what they mean: one word for one thing, verbs for functions, American English."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = sorted(
    file for part in ("domain", "projections", "adapters") for file in (ROOT / part).rglob("*.py")
)

SEAMS = {
    *("FORMAT", "FORMAT_NAME", "begin_reading", "read", "recognizes", "write"),  # of each format
    "Factory",  # eventsourcing finds it by this name, once for each database
    "logger",
    "main",
    "render",  # of each renderer
}
"""Names that several modules define because one thing looks for them in each."""
COMMANDS = ROOT / "adapters" / "interfaces" / "commands"
"""Where a function has the name of its command, which may be a function of Python's as well."""
FORBIDDEN = re.compile(
    r"summaris|recognis|utilis|normalis|initialis|serialis|colour|behaviour|crew|errand|unheard",
    re.IGNORECASE,
)
PARTICIPLE = re.compile(
    r"(?:[a-z]{3,}(?:ed|wn|ught|orn|ept)|said|told|made|done|gone|seen|sent|heard|held|kept|left)"
)
NOT_PARTICIPLES = {"accept", "embed", "feed", "need", "proceed", "seed", "speed"}


@cache
def parse_modules() -> dict[Path, ast.Module]:
    return {file: ast.parse(file.read_text("utf-8")) for file in FILES}


def definitions(module: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Yield what a module defines at its top level, by name."""
    for node in module.body:
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                yield name, node
            case ast.Assign(targets=targets):
                yield from ((one.id, node) for one in targets if isinstance(one, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name, node
            case _:
                pass


def test_no_public_name_is_defined_in_two_modules() -> None:
    places: dict[str, set[str]] = defaultdict(set)
    for file, module in parse_modules().items():
        for name, node in definitions(module):
            is_command = file.parent == COMMANDS and isinstance(node, ast.FunctionDef)
            if not name.startswith("_") and name not in SEAMS and not is_command:
                places[name].add(str(file.relative_to(ROOT)))

    assert not {name: found for name, found in places.items() if len(found) > 1}


def test_no_function_is_a_bare_participle_and_no_name_uses_a_forbidden_stem() -> None:
    names = [
        (f"{file.relative_to(ROOT)}:{node.lineno}", node)
        for file, tree in parse_modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.arg)
    ]
    for place, node in names:
        name = node.arg if isinstance(node, ast.arg) else node.name
        assert not FORBIDDEN.search(name), f"{place} {name}"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            is_participle = PARTICIPLE.fullmatch(name.strip("_")) and name not in NOT_PARTICIPLES
            assert not is_participle, f"{place} {name}"
