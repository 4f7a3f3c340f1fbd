"""`cutbank settings` and `cutbank policies` say what can be set, and what is set."""

import re
import sys
from pathlib import Path

import pytest

from cutbank.adapters.runtime.compaction.hook_commands import HookCommand
from cutbank.adapters.settings.load_settings import load_settings
from cutbank.adapters.settings.policy_catalog import get_policy
from cutbank.adapters.settings.settings import Settings
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.hooks import CompactionEvent, CompactionEventKind, Veto, ViewStats
from cutbank.domain.policies.catalog import DEFAULT_POLICY, POLICIES, find_alias
from cutbank.domain.policies.policy import get_presets, list_settings

from .conftest import Run

PAGE = (Path(__file__).parents[3] / "docs" / "settings.md").read_text(encoding="utf-8")


@pytest.fixture
def written(tmp_path: Path) -> Path:
    file = tmp_path / "mine.toml"
    file.write_text('[compaction]\nlimit = 8_000\n[summary]\nchain = ["llm"]\n', encoding="utf-8")
    return file


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_each_value_is_shown_with_its_unit_and_its_origin(
    run: Run, written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUTBANK_SUMMARY_TIME_LIMIT", "30")

    answer = run("settings", "--settings", written)

    assert answer.code == 0
    lines = [" ".join(line.split()) for line in answer.out.splitlines()]
    assert lines[0] == str(written)
    assert "compaction.limit 8000 tokens mine.toml:2" in lines
    assert "summary.time_limit 30 seconds CUTBANK_SUMMARY_TIME_LIMIT" in lines
    assert "compaction.minimum_gain 0.1 of the view default" in lines
    assert "compaction.settings.keep_tokens none (tokens) default" in lines
    assert max(map(len, answer.out.splitlines())) <= 100


def test_the_example_is_complete_and_changes_nothing(run: Run, tmp_path: Path) -> None:
    example = tmp_path / "example.toml"

    example.write_text(run("settings", "--example").out, encoding="utf-8")

    assert load_settings(example, {}) == Settings()
    for one in run("settings", "--json").json["settings"]:
        key = one["name"].split(".")[-1]
        assert re.search(rf"^#?(\[+)?(hooks\.)?{key}\b", example.read_text(), re.MULTILINE), key
    assert run("settings", "--example", "--json").json["example"] == example.read_text()

    text = re.sub(r"^#(?=\S)", "", example.read_text(), flags=re.MULTILINE)
    example.write_text(text, encoding="utf-8")
    settings = load_settings(example, {})
    assert settings.models["NAME"].context == 200_000
    assert settings.hooks.commands[0].on == (CompactionEventKind.PRE_COMPACT,)


def test_the_place_is_said_whether_anything_is_there_or_not(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("settings", "--path").out.strip().endswith("settings.toml")
    assert run("settings").code == 0
    monkeypatch.setenv("CUTBANK_SETTINGS", str(tmp_path / "not.toml"))

    assert run("settings", "--path", "--json").json == {
        "file": str(tmp_path / "not.toml"),
        "exists": False,
    }
    assert run("settings").code == 2


def test_mistakes_are_one_line_each_and_no_traceback(run: Run, written: Path) -> None:
    written.write_text('[compaction]\nlimit = "many"\n\n[summary]\nchian = []\n', encoding="utf-8")

    said = run("--settings", written, "settings")
    as_json = run("settings", "--settings", written, "--json")

    assert said.code == as_json.code == 2
    assert said.out == ""
    lines = said.err.splitlines()
    assert [line.startswith(f"cutbank: {written}:") for line in lines] == [True, True]
    assert as_json.json["error"].splitlines() == [line.removeprefix("cutbank: ") for line in lines]


def test_what_the_page_shows_as_settings_loads(tmp_path: Path) -> None:
    file = tmp_path / "page.toml"
    for text in blocks("toml"):
        file.write_text(text, encoding="utf-8")
        assert load_settings(file, {}) != Settings(), text


def test_the_hook_on_the_page_works(tmp_path: Path) -> None:
    script = tmp_path / "hook.py"
    (text,) = blocks("python")
    script.write_text(text, encoding="utf-8")
    hook = HookCommand((sys.executable, str(script)), time_limit_s=60)

    def answer(trigger: Trigger, tokens: int) -> Veto | None:
        before = ViewStats(tokens, 9)
        return hook(
            CompactionEvent(
                CompactionEventKind.PRE_COMPACT,
                "s",
                "default",
                "main",
                trigger=trigger,
                before=before,
            )
        )

    veto = Veto(veto=f"{Path(sys.executable).name}: this session is small")
    assert answer(Trigger.THRESHOLD, 9_000) == veto
    assert answer(Trigger.MANUAL, 9_000) == Veto("Keep the names of all rivers.")


def test_every_policy_is_listed_with_its_presets_and_settings(run: Run, file: Path) -> None:
    listed = {one["name"]: one for one in run("policies", "--json").json}

    assert list(listed) == list(POLICIES)
    for name, policy in POLICIES.items():
        one = listed[name]
        assert one["aliases"] == [find_alias(policy)]
        assert one["default"] == (name == DEFAULT_POLICY)
        assert one["source"]
        assert one["package"] is None
        for preset in one["presets"]:
            same = get_policy(name, **preset["settings"])
            assert get_policy(f"{name}@{preset['name']}") == same
        assert [preset["name"] for preset in one["presets"]] == list(get_presets(policy))
        assert [setting["name"] for setting in one["settings"]] == [
            setting.name for setting in list_settings(policy)
        ]
    assert not file.exists()


def test_people_are_told_what_a_preset_sets(run: Run) -> None:
    said = run("policies").out

    for name, policy in POLICIES.items():
        part = said.partition(f"{name} ({find_alias(policy)}")[2].partition("\n\n")[0]
        assert f"from {getattr(policy, 'source', None)}" in part
        for preset, settings in get_presets(policy).items():
            (line,) = [line for line in part.splitlines() if f"@{preset} " in line]
            assert all(f"{setting}=" in line for setting in settings)


def test_a_preset_is_taken_with_settings_over_it(run: Run, long_talk: Path) -> None:
    words = ("--policy", "tunacode@as_shipped", "--set", "keep_recent_tokens=1000")

    outcome = run("compact", "long", *words, "--json").json

    assert outcome["compacted"]
    assert outcome["policy"] == "retention-window"
