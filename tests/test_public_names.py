"""What `import cutbank` gives is one list, however it is looked at."""

import ast
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import cutbank

ROOT = Path(__file__).parents[1]


def test_type_checkers_see_the_listed_names_from_the_same_modules() -> None:
    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    (block,) = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    seen = {
        alias.asname or alias.name: (f"cutbank.{node.module}", alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    declared = [ast.unparse(node.target) for node in block.body if isinstance(node, ast.AnnAssign)]

    assert declared == ["__version__"]
    assert sorted([*seen, *declared]) == dir(cutbank) == sorted([*cutbank.__all__, *declared])
    for name, (module, original) in seen.items():
        assert getattr(import_module(module), original) is getattr(cutbank, name), name


def test_the_version_is_the_declared_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    assert cutbank.__version__ == project["version"]


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'cutbank' has no attribute 'nothing'"):
        cutbank.nothing  # noqa: B018


def test_a_session_stays_small_enough_to_learn(session: cutbank.StoredSession) -> None:
    members = [name for name in dir(session) if not name.startswith("_")]

    assert len(members) <= 26, members
