"""The page on importing names what there is."""

import re
from pathlib import Path

from typer.main import get_command

from cutbank.adapters.interfaces.command_line.cli import app
from cutbank.adapters.runtime.importing.transcript_discovery import MOVED_BY

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "importing.md").read_text(encoding="utf-8")


def options() -> set[str]:
    """What `cutbank import` takes of its own."""
    verb = get_command(app).commands["import"]  # type: ignore[attr-defined]
    shared = {"--db", "--namespace", "--json", "--settings", "--help"}
    return {opt for one in verb.params for opt in one.opts if opt.startswith("--")} - shared


def test_every_option_that_is_named_is_there_and_every_one_is_described() -> None:
    table = (DOCS / "cli.md").read_text(encoding="utf-8").split("## import\n")[1].split("\n## ")[0]

    assert set(re.findall(r"\| `(--[a-z]+)", table)) == options()
    assert set(re.findall(r"--[a-z]+", PAGE)) <= options() | {"--json"}


def test_every_variable_is_named() -> None:
    for _, variable, _ in MOVED_BY:
        assert f"`{variable}`" in PAGE
