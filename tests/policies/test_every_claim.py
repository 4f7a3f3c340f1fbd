"""Every claim of the reference documents has a test that names it, and that is run."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CLAIMS = [
    f"S{system}.{number}"
    for system, last in enumerate((50, 40, 53, 34, 52))
    for number in range(1, last + 1)
]
LEAVING = {"skip", "skipif", "xfail", "importorskip", "pytestmark"}


def claims_in(source: str) -> Iterator[str]:
    """Yield the claims that a file's tests name; raises AssertionError for one that guards none."""
    tree = ast.parse(source)
    marks: list[ast.Call] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            own = [one for one in node.decorator_list if isinstance(one, ast.Call) and is_mark(one)]
            marks += own
            assert not own or not LEAVING & names_in(node), f"{node.name} may not be run"
    everything = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and is_mark(node)]
    assert len(everything) == len(marks), "a mark is not on a test at the top of its file"
    assert not marks or "pytestmark" not in names_in(tree), "the whole file may not be run"
    for mark in marks:
        assert mark.args, "a mark names no claim"
        yield from (ast.literal_eval(word) for word in mark.args)


def is_mark(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "claim"


def names_in(tree: ast.AST) -> set[str]:
    found = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return found | {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def test_every_claim_has_a_test() -> None:
    files = [file for file in TESTS.rglob("*.py") if "mark.claim" in file.read_text("utf-8")]
    named = {id for file in files for id in claims_in(file.read_text("utf-8"))}

    assert all(file.name.startswith("test_") for file in files)
    assert len(CLAIMS) == 229
    assert named == set(CLAIMS)


MARK = "@pytest.mark.claim('S0.1')"


@pytest.mark.parametrize(
    "source",
    [
        "@pytest.mark.claim()\ndef test_x(): ...",
        "@pytest.mark.claim(ID)\ndef test_x(): ...",
        f"{MARK}\ndef check_x(): ...",
        f"{MARK}\nasync def test_x(): ...",
        f"class TestX:\n  {MARK}\n  def test_x(self): ...",
        f"@pytest.mark.skip\n{MARK}\ndef test_x(): ...",
        f"{MARK}\n@pytest.mark.xfail(strict=True)\ndef test_x(): ...",
        f"pytestmark = [pytest.mark.skip]\n{MARK}\ndef test_x(): ...",
        f"{MARK}\ndef test_x():\n  pytest.skip('no')",
    ],
)
def test_a_mark_that_guards_nothing_is_seen(source: str) -> None:
    with pytest.raises((AssertionError, ValueError)):
        list(claims_in(source))
