"""Every claim of the reference documents has a test that names it, and that is run."""

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
CLAIMS = [
    f"S{system}.{number}"
    for system, last in enumerate((50, 40, 53, 34, 52))
    for number in range(1, last + 1)
]
NOT_RUN = {"skip", "skipif", "xfail"}

Found = tuple[str, str]
"""A claim's id and where its test stands, or what is wrong with it and where."""


def claims_in(path: Path, source: str) -> tuple[list[Found], list[str]]:
    """The claims that tests of a file name, and what is wrong with its markers."""
    named: list[Found] = []
    wrong: list[str] = []
    tree = ast.parse(source)
    seen: set[ast.Call] = set()
    for owner, function in functions(tree):
        marks = [mark for decorator in function.decorator_list if (mark := claim(decorator))]
        if not marks:
            continue
        seen |= set(marks)
        where = f"{path}:{function.lineno} {function.name}"
        if not is_test(owner, function):
            wrong.append(f"{where} is no test that pytest collects")
        if skipped := [name for name in marker_names(owner, function, tree) if name in NOT_RUN]:
            wrong.append(f"{where} is marked {skipped[0]}")
        if any(leaves(node) for node in ast.walk(function)):
            wrong.append(f"{where} may leave before it has checked anything")
        for mark in marks:
            ids = [word.value for word in mark.args if isinstance(word, ast.Constant)]
            if not ids or len(ids) != len(mark.args) or mark.keywords:
                wrong.append(f"{where}: a claim is marked by its ids, as texts")
            wrong += [f"{where}: there is no claim {id!r}" for id in ids if id not in CLAIMS]
            named += [(str(id), where) for id in ids]
    elsewhere = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and claim(node)]
    wrong += [
        f"{path}:{mark.lineno} marks a claim, but no test" for mark in elsewhere if mark not in seen
    ]
    return named, wrong


def functions(
    tree: ast.Module,
) -> Iterator[tuple[ast.ClassDef | None, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """The functions that pytest looks at, with the class that they stand in."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield None, node
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield node, inner


def claim(decorator: ast.expr) -> ast.Call | None:
    """The call of `pytest.mark.claim`, if it is one."""
    match decorator:
        case ast.Call(
            func=ast.Attribute(attr="claim", value=ast.Attribute(attr="mark")),
        ):
            return decorator
        case _:
            return None


def leaves(node: ast.AST) -> bool:
    """Whether it is `pytest.skip(...)` or the like."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name, value=ast.Name(id="pytest"))):
            return name in {"skip", "xfail", "importorskip"}
        case _:
            return False


def is_test(owner: ast.ClassDef | None, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    is_collected = owner is None or owner.name.startswith("Test")
    # Nothing here runs what is asynchronous: such a test would pass unawaited.
    return (
        is_collected and isinstance(function, ast.FunctionDef) and function.name.startswith("test_")
    )


def marker_names(
    owner: ast.ClassDef | None,
    function: ast.FunctionDef | ast.AsyncFunctionDef,
    tree: ast.Module,
) -> Iterator[str]:
    """The marks on the test, on its class, and on the whole file."""
    marks = [*function.decorator_list, *(owner.decorator_list if owner else [])]
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="pytestmark")], value=value):
                marks += value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
            case _:
                pass
    for mark in marks:
        target = mark.func if isinstance(mark, ast.Call) else mark
        if isinstance(target, ast.Attribute):
            yield target.attr


def test_every_claim_has_a_test() -> None:
    named: set[str] = set()
    wrong: list[str] = []
    for file in sorted(TESTS.rglob("*.py")):
        found, complaints = claims_in(file.relative_to(TESTS), file.read_text(encoding="utf-8"))
        # Only what pytest collects is run.
        wrong += [
            f"{where} stands in a file that pytest does not collect"
            for _, where in found
            if not file.name.startswith("test_")
        ]
        named |= {id for id, _ in found}
        wrong += complaints

    missing = [id for id in CLAIMS if id not in named]
    assert len(CLAIMS) == 229, "as many as the documents make"

    assert not wrong, "\n".join(wrong)
    assert not missing, f"{len(missing)} claims have no test: {', '.join(missing)}"


MARK = "@pytest.mark.claim"


def test_a_marker_that_guards_nothing_is_seen() -> None:
    rows: list[tuple[str, str]] = [
        (f"{MARK}('S0.51')\ndef test_x(): ...", "there is no claim 'S0.51'"),
        (f"{MARK}('S5.1')\ndef test_x(): ...", "there is no claim 'S5.1'"),
        (f"{MARK}()\ndef test_x(): ...", "by its ids"),
        (f"{MARK}(ID)\ndef test_x(): ...", "by its ids"),
        (f"{MARK}('S0.1')\ndef check_x(): ...", "is no test that pytest collects"),
        (f"{MARK}('S0.1')\nasync def test_x(): ...", "is no test that pytest collects"),
        (f"class Fake:\n  {MARK}('S0.1')\n  def test_x(self): ...", "is no test that"),
        (f"@pytest.mark.skip\n{MARK}('S0.1')\ndef test_x(): ...", "is marked skip"),
        (f"{MARK}('S0.1')\n@pytest.mark.xfail(strict=True)\ndef test_x(): ...", "is marked xfail"),
        (f"{MARK}('S0.1')\n@pytest.mark.skipif(True)\ndef test_x(): ...", "is marked skipif"),
        (f"pytestmark = [pytest.mark.skip]\n{MARK}('S0.1')\ndef test_x(): ...", "is marked skip"),
        (f"{MARK}('S0.1')\ndef test_x():\n  pytest.skip('no')", "may leave before it"),
        (f"{MARK}('S0.1')\nclass TestX: ...", "marks a claim, but no test"),
        ("pytestmark = pytest.mark.claim('S0.1')", "marks a claim, but no test"),
    ]
    for source, wrong in rows:
        _, complaints = claims_in(Path("test_x.py"), source)

        assert any(wrong in complaint for complaint in complaints), source


def test_what_is_marked_is_found() -> None:
    rows: list[str] = [
        f"{MARK}('S0.1', 'S4.52')\ndef test_x(): ...",
        f"@FOLDERS\n{MARK}('S0.1')\n{MARK}('S4.52')\ndef test_x(): ...",
        f"class TestX:\n  {MARK}('S0.1', 'S4.52')\n  def test_x(self): ...",
    ]
    for source in rows:
        named, complaints = claims_in(Path("test_x.py"), source)

        assert {id for id, _ in named} == {
            "S0.1",
            "S4.52",
        }, source
        assert not complaints, source
