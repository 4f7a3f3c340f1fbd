"""docs/policies.md says of the policies what the catalog says, and its example is a real one."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import cutbank
from cutbank.adapters.settings import policy_catalog
from cutbank.adapters.settings.compaction_settings import CompactionSettings
from cutbank.adapters.settings.settings import Settings
from cutbank.domain import fitting
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.policies.catalog import DEFAULT, POLICIES, alias_of, policy_named
from cutbank.domain.policies.contract.sample_windows import long
from cutbank.domain.policies.policy import presets_of
from cutbank.domain.window import OnFailure

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "policies.md").read_text(encoding="utf-8")
PROGRAM = [
    sys.executable,
    "-c",
    "from cutbank.adapters.interfaces.command_line.cli import main; main()",
]
LONGEST = 30


def shown(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def rows(heading: str) -> list[list[str]]:
    """The cells of each table whose first heading is this one."""
    tables = re.findall(rf"^\| {heading} \|.*?\n\|[-|]+\n((?:\|.*\n)+)", PAGE, flags=re.MULTILINE)
    return [
        [cell.strip() for cell in line.strip("|\n").split("|")]
        for table in tables
        for line in table.splitlines()
    ]


def named(cell: str) -> str:
    return re.sub(r"[\[(].*?[\])]", "", cell.replace("[", "").replace("]", "")).split(" ")[0]


def test_the_tables_have_every_policy_and_no_other() -> None:
    tables = 4

    assert sorted(named(row[0]) for row in rows("policy")) == sorted([*POLICIES] * tables)


def test_names_aliases_documents_and_presets_are_the_catalogs() -> None:
    for name, policy in POLICIES.items():
        row = next(row for row in rows("policy") if named(row[0]) == name)
        assert row[1] == alias_of(policy)
        assert getattr(policy, "source", "").startswith(row[2])
        assert re.findall(r"`@(\w+)`", row[3]) == list(presets_of(policy))
        assert ("(the default)" in row[0]) == (name == DEFAULT)


def test_each_policy_has_a_page_of_its_own() -> None:
    for name in POLICIES:
        assert f"[{name}](policies/{name}.md)" in PAGE
        assert (DOCS / "policies" / f"{name}.md").is_file(), f"docs/policies/{name}.md is missing"


IN_WORDS = {
    OnFailure.EXTRACTIVE: "a summary by rules",
    OnFailure.NOTICE: "a notice",
    OnFailure.UNCHANGED: "the view stays as it was",
}


def test_what_stands_in_is_what_the_plans_say() -> None:
    told = {named(row[0]): row for row in rows("policy") if len(row) == 3}
    for name, policy in POLICIES.items():
        plan = policy().plan(long(99).window(trigger=Trigger.MANUAL))
        assert plan is not None
        _, stands_in, otherwise = told[name]
        if plan.summary_tokens:
            assert stands_in.startswith("a summary")
            assert otherwise.startswith(IN_WORDS[plan.on_failure]), name
            assert ("beginning of a turn" in stands_in) == bool(plan.turn_tokens), name
        else:
            assert stands_in.startswith("a notice")
            assert otherwise == "it needs none"


def test_each_rule_of_repair_is_told() -> None:
    source = "".join(
        Path(str(module.__file__)).read_text(encoding="utf-8") for module in (repairs, fitting)
    )

    assert {row[0].strip("`") for row in rows("rule")} == set(re.findall(r'rule="(.*?)"', source))


def test_the_settings_on_the_page_are_taken() -> None:
    given = tomllib.loads(shown("toml")[0])["compaction"]

    chosen = Settings(compaction=CompactionSettings.model_validate(given)).policy

    assert chosen == policy_named(given["policy"], given["settings"])


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The example, installed as the page says."""
    code, site = shown("python")[0], tmp_path / "site"
    info = site / "newest_turns-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "newest_turns.py").write_text(code, encoding="utf-8")
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: newest-turns\nVersion: 1.0\n", encoding="utf-8"
    )
    groups = tomllib.loads(shown("toml")[1])["project"]["entry-points"]
    lines = [
        line
        for group, points in groups.items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in points.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(site))
    policy_catalog.brought.cache_clear()
    yield site
    policy_catalog.brought.cache_clear()


def test_the_example_is_short_and_keeps_the_contract(installed: Path) -> None:
    example, test = shown("python")
    assert len(example.splitlines()) < LONGEST

    page: dict[str, object] = {}
    exec(compile(test, "docs/policies.md", "exec"), page)  # noqa: S102 - as a reader would
    check = page["test_it_keeps_the_contract"]

    assert callable(check)
    check()


def test_the_example_is_found_in_settings_and_by_sessions(
    installed: Path, session: cutbank.StoredSession
) -> None:
    for turn in range(9):
        session.append(
            cutbank.Block.user(f"Question {turn}?"), cutbank.Block.assistant("silt " * 900)
        )

    outcome = session.compact("newest-turns", settings={"turns": "2"})

    chosen = Settings(compaction=CompactionSettings(policy="newest-turns")).policy
    assert chosen.name == outcome.policy == "newest-turns"
    assert len(session.view().entries) == 4


@pytest.mark.slow
def test_the_command_line_knows_the_example(installed: Path, tmp_path: Path) -> None:
    def run(*words: str) -> object:
        environ = os.environ | {"PYTHONPATH": str(installed), "CUTBANK_DB": str(tmp_path / "a.db")}
        done = subprocess.run(
            [*PROGRAM, *words, "--json"], capture_output=True, check=True, env=environ, text=True
        )
        assert done.stderr == ""
        return json.loads(done.stdout)

    for turn in range(4):
        run("append", "s", f"Question {turn}?")
        run("append", "s", "--role", "assistant", "silt and clay, " * 400)
    listed = run("policies")
    outcome = run("compact", "s", "--policy", "newest-turns", "--set", "turns=1", "--dry-run")

    assert isinstance(listed, list)
    example = listed[-1]
    assert (example["name"], example["package"]) == ("newest-turns", "newest-turns 1.0")
    assert example["summary"].startswith("From so much of the limit on")
    assert [setting["name"] for setting in example["settings"]] == ["share", "turns"]
    assert isinstance(outcome, dict)
    assert outcome["policy"] == "newest-turns"
    assert outcome["explanation"]["threshold"] == 140_000
