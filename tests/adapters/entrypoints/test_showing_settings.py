"""`cutbank settings`, and what the page about settings says."""

import json
import re
import sys
from pathlib import Path

import pytest
from databases import on_sqlite

from cutbank.adapters.runtime.compaction.hook_commands import HookCommand
from cutbank.adapters.settings.load_settings import load
from cutbank.adapters.settings.settings import Settings
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.hooks import Happening, Moment, Stats, Verdict

from .conftest import Run

PAGE = (Path(__file__).parents[3] / "docs" / "settings.md").read_text(encoding="utf-8")


@pytest.fixture
def written(tmp_path: Path) -> Path:
    file = tmp_path / "mine.toml"
    file.write_text('[compaction]\nlimit = 8_000\n[summary]\nchain = ["llm"]\n', encoding="utf-8")
    return file


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@on_sqlite
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


@on_sqlite
def test_json_has_all_that_is_known_of_a_value(run: Run, written: Path) -> None:
    shown = run("settings", "--json", "--settings", written).json

    assert shown["file"] == str(written)
    assert shown["exists"] is True
    (limit,) = [one for one in shown["settings"] if one["name"] == "compaction.limit"]
    assert limit == {
        "name": "compaction.limit",
        "value": 8_000,
        "unit": "tokens",
        "takes": "a whole number of tokens from 1, or none",
        "help": "what the context holds; none is what the model holds",
        "default": None,
        "origin": f"{written}:2",
        "file": str(written),
        "line": 2,
        "variable": None,
    }
    assert {one["origin"] for one in shown["settings"]} == {
        "default",
        f"{written}:2",
        f"{written}:4",
    }


@on_sqlite
def test_the_example_is_complete_and_changes_nothing(run: Run, tmp_path: Path) -> None:
    example = tmp_path / "example.toml"

    example.write_text(run("settings", "--example").out, encoding="utf-8")

    assert load(example, {}) == Settings()
    for one in run("settings", "--json").json["settings"]:
        key = one["name"].split(".")[-1]
        assert re.search(rf"^#?(\[+)?(hooks\.)?{key}\b", example.read_text(), re.MULTILINE), key
    assert run("settings", "--example", "--json").json["example"] == example.read_text()


@on_sqlite
def test_the_examples_in_the_example_are_right(run: Run, tmp_path: Path) -> None:
    example = tmp_path / "example.toml"
    text = run("settings", "--example").out

    example.write_text(re.sub(r"^#(?=\S)", "", text, flags=re.MULTILINE), encoding="utf-8")

    settings = load(example, {})
    assert settings.models["NAME"].context == 200_000
    assert settings.hooks.commands[0].on == (Moment.PRE_COMPACT,)


@on_sqlite
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


@on_sqlite
def test_mistakes_are_one_line_each_and_no_traceback(run: Run, written: Path) -> None:
    written.write_text('[compaction]\nlimit = "many"\n\n[summary]\nchian = []\n', encoding="utf-8")

    said = run("--settings", written, "settings")
    as_json = run("settings", "--settings", written, "--json")

    assert said.code == as_json.code == 2
    assert said.out == ""
    lines = said.err.splitlines()
    expected = PAGE.replace("cutbank: settings.toml", f"cutbank: {written}")
    assert len(lines) == 2
    assert all(f"    {line}\n" in expected for line in lines)
    assert as_json.json["error"].splitlines() == [line.removeprefix("cutbank: ") for line in lines]


@on_sqlite
def test_no_database_is_made(run: Run, file: Path) -> None:
    run("settings")

    assert not file.exists()


@pytest.mark.parametrize("text", blocks("toml"))
def test_what_the_page_shows_as_settings_loads(tmp_path: Path, text: str) -> None:
    file = tmp_path / "page.toml"
    file.write_text(text, encoding="utf-8")

    assert load(file, {}) != Settings()


def test_variables_on_the_page_are_settings(tmp_path: Path) -> None:
    empty = tmp_path / "empty.toml"
    empty.touch()
    said = re.findall(r"^    (CUTBANK_\w+)='?([^'\n]*)'?$", PAGE, re.MULTILINE)

    settings = load(empty, dict(said))

    assert len(said) == 4
    assert {str(settings.origin(*path)) for path in settings._origins} == {one for one, _ in said}


@pytest.mark.parametrize(
    ("trigger", "tokens", "verdict"),
    [
        (
            Trigger.THRESHOLD,
            9_000,
            Verdict(veto=f"{Path(sys.executable).name}: this session is small"),
        ),
        (Trigger.THRESHOLD, 90_000, Verdict("Keep the names of all rivers.")),
        (Trigger.MANUAL, 9_000, Verdict("Keep the names of all rivers.")),
    ],
)
def test_the_hook_on_the_page_works(
    tmp_path: Path, trigger: Trigger, tokens: int, verdict: Verdict
) -> None:
    script = tmp_path / "hook.py"
    (text,) = blocks("python")
    script.write_text(text, encoding="utf-8")
    hook = HookCommand((sys.executable, str(script)), time_limit_s=60)

    answer = hook(
        Happening(
            Moment.PRE_COMPACT, "s", "default", "main", trigger=trigger, before=Stats(tokens, 9)
        )
    )

    assert answer == verdict


def test_the_page_names_every_moment_section_and_key_that_is_told() -> None:
    told = json.dumps(sorted(Happening.__dataclass_fields__))

    for word in [*Moment, *json.loads(told), "hook_event_name", "set_off_by"]:
        assert f"`{word}`" in PAGE, word
    for section in Settings.model_fields:
        assert re.search(rf"`\[+{section}\b", PAGE), section
