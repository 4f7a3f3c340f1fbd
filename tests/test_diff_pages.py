"""The pages about diffs and lineages: each command on them runs."""

import re
import shlex
from pathlib import Path

import pytest

import cutbank
from cutbank.adapters.analysis.auditing.page import page_selection
from cutbank.adapters.analysis.auditing.page.page_story import COMPARED
from cutbank.adapters.interfaces.command_line.cli import main
from cutbank.projections.lineage_tree import Standing

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ("diff.md", "lineage.md")


def commands() -> list[str]:
    fences = [
        fence
        for page in PAGES
        for fence in re.findall(
            r"^```sh\n(.*?)^```",
            (DOCS / page).read_text(encoding="utf-8"),
            re.DOTALL | re.MULTILINE,
        )
    ]
    return [line.partition("   #")[0].strip() for fence in fences for line in fence.splitlines()]


@pytest.mark.parametrize("command", commands())
def test_every_command_on_the_pages_runs(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    database = str(tmp_path / "a.db")
    with cutbank.open(database) as store:
        session = store.session("SESSION")
        for turn in range(20):
            session.append(
                cutbank.Block.user(f"Question {turn}"), cutbank.Block.assistant("silt " * 500)
            )
        session.compact(settings={"keep_tokens": 1_000})
        session.compact(settings={"keep_tokens": 1_000}, lineage="what-if")

    with pytest.raises(SystemExit) as exited:
        main([*shlex.split(command)[1:], "--db", database])

    assert exited.value.code == 0


def test_the_pages_name_every_standing_and_the_sizes_of_a_page() -> None:
    diff, lineage = ((DOCS / page).read_text(encoding="utf-8") for page in PAGES)

    assert set(re.findall(r"^\| `([a-z ]+)` \|", lineage, re.MULTILINE)) == set(Standing)
    for size in (page_selection.BLOCKS, page_selection.CALLS, page_selection.CHARACTERS, COMPARED):
        assert f"{size:,}" in diff
