"""What `import cutbank` gives is one list, however it is looked at."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

import cutbank

TREE = ast.parse((Path(__file__).parents[1] / "__init__.py").read_text(encoding="utf-8"))


def test_the_names_that_are_listed_are_all_the_names_there_are() -> None:
    assert dir(cutbank) == sorted([*cutbank.__all__, "__version__"])
    assert len(set(cutbank.__all__)) == len(cutbank.__all__)


@pytest.mark.parametrize("name", dir(cutbank))
def test_a_listed_name_loads(name: str) -> None:
    assert getattr(cutbank, name) is not None


def test_type_checkers_see_the_same_names_from_the_same_modules() -> None:
    (block,) = [
        node
        for node in TREE.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    seen = {
        alias.asname or alias.name: (f"cutbank.{node.module}", alias.name)
        for node in imports
        for alias in node.names
    }
    declared = [ast.unparse(node.target) for node in block.body if isinstance(node, ast.AnnAssign)]

    assert sorted([*seen, *declared]) == dir(cutbank)
    assert declared == ["__version__"]
    for name, (module, original) in seen.items():
        assert getattr(import_module(module), original) is getattr(cutbank, name), name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'cutbank' has no attribute 'nothing'"):
        cutbank.nothing  # noqa: B018


def test_a_session_stays_small_enough_to_learn(session: cutbank.StoredSession) -> None:
    members = [name for name in dir(session) if not name.startswith("_")]

    assert len(members) <= 26, members
