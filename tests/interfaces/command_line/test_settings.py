"""`cutbank settings` and `cutbank policies` say what can be set, and what is set."""

import re
from pathlib import Path

import pytest

from cutbank import CompactionEventKind, Settings, get_policy, load_settings
from cutbank.domain.policies.catalog import DEFAULT_POLICY, POLICIES, find_alias
from cutbank.domain.policies.policy import get_presets
from cutbank.domain.settings import list_settings

from .conftest import Run


@pytest.fixture
def written(tmp_path: Path) -> Path:
    file = tmp_path / "mine.toml"
    file.write_text('[compaction]\nlimit = 8_000\n[summary]\nchain = ["llm"]\n', encoding="utf-8")
    return file


def test_each_value_is_shown_with_its_unit_and_its_origin(
    run: Run, written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUTBANK_SUMMARY_TIME_LIMIT", "30")

    answer = run("settings", "--settings", written)

    assert answer.code == 0
    lines = answer.out.splitlines()
    assert lines[0] == str(written)
    assert "compaction.limit = 8000 tokens (mine.toml)" in lines
    assert "summary.time_limit = 30 seconds (CUTBANK_SUMMARY_TIME_LIMIT)" in lines
    assert "compaction.minimum_gain = 0.1 of the view (default)" in lines
    assert "compaction.settings.keep_tokens = none (tokens) (default)" in lines
    assert max(map(len, answer.out.splitlines())) <= 100


def test_the_example_is_complete_and_changes_nothing(run: Run, tmp_path: Path) -> None:
    example, text = tmp_path / "example.toml", run("settings", "--example").out

    example.write_text(text, encoding="utf-8")

    assert load_settings(example, {}) == Settings()
    assert run("settings", "--example", "--json").json["example"] == text
    for one in run("settings", "--json").json["settings"]:
        key = one["name"].split(".")[-1]
        assert re.search(rf"^#?(\[+)?(hooks\.)?{key}\b", text, re.MULTILINE), key
    example.write_text(re.sub(r"^#(?=\S)", "", text, flags=re.MULTILINE), encoding="utf-8")
    settings = load_settings(example, {})
    assert settings.models["NAME"].context == 200_000
    assert settings.hooks.commands[0].on == (CompactionEventKind.PRE_COMPACT,)


def test_the_place_is_said_whether_anything_is_there_or_not(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("settings", "--path").out.strip().endswith("settings.toml")
    assert run("settings").code == 0
    missing = str(tmp_path / "not.toml")
    monkeypatch.setenv("CUTBANK_SETTINGS", missing)

    assert run("settings", "--path", "--json").json == {"file": missing, "exists": False}
    assert run("settings").code == 2


def test_mistakes_are_one_line_each_and_no_traceback(run: Run, written: Path) -> None:
    written.write_text('[compaction]\nlimit = "many"\n\n[summary]\nchian = []\n', encoding="utf-8")

    said = run("--settings", written, "settings")
    as_json = run("settings", "--settings", written, "--json")

    assert (said.code, as_json.code, said.out) == (2, 2, "")
    lines = said.err.splitlines()
    assert [line.startswith(f"cutbank: {written}:") for line in lines] == [True, True]
    assert as_json.json["error"].splitlines() == [line.removeprefix("cutbank: ") for line in lines]


def test_every_policy_is_listed_with_its_presets_and_settings(run: Run, file: Path) -> None:
    listed = run("policies", "--json").json
    said = run("policies").out

    assert [one["name"] for one in listed] == list(POLICIES)
    for one, (name, policy) in zip(listed, POLICIES.items(), strict=True):
        presets, settings = get_presets(policy), list_settings(policy)
        alias = find_alias(policy)
        assert (one["aliases"], one["package"]) == ([alias] if alias else [], None)
        assert one["default"] == (name == DEFAULT_POLICY)
        assert [preset["name"] for preset in one["presets"]] == list(presets)
        assert [setting["name"] for setting in one["settings"]] == [each.name for each in settings]
        also = [*([alias] if alias else []), *(["the default"] if one["default"] else [])]
        heading = name + (f" ({', '.join(also)})" if also else "")
        part = said.partition(f"{heading}\n")[2].partition("\n\n")[0]
        assert f"follows {one['source']}" in part or not one["source"]
        for preset in one["presets"]:
            word = f"{name}@{preset['name']}"
            given = get_policy(word)
            assert {key: getattr(given, key) for key in preset["settings"]} == preset["settings"]
            (line,) = [line for line in part.splitlines() if f"@{preset['name']} " in line]
            assert all(f"{setting}=" in line for setting in presets[preset["name"]])
    assert not file.exists()
