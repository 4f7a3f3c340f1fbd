"""Settings: what holds, where it came from, and how a mistake is named by its line."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from platformdirs import user_config_path
from pydantic import ValidationError

from cutbank.adapters.settings.listing import listed
from cutbank.adapters.settings.load_settings import load
from cutbank.adapters.settings.secret_values import holds_a_key, names_a_key, shown
from cutbank.adapters.settings.section import Section, told
from cutbank.adapters.settings.settings import Settings
from cutbank.adapters.settings.summary_settings import SummarySettings
from cutbank.adapters.settings.toml_lines import lines_of
from cutbank.domain.blocks import Kind
from cutbank.domain.errors import InvalidSettingError
from cutbank.domain.hooks import Moment
from cutbank.domain.pins import PinRules
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom

KEY = "sk-ant-api03-Zq8vN2xK7wPqLmT4"

WRITTEN = '''\
# of a project
[compaction]
limit = 128_000
instructions = """
Name the rivers.
[summary]
"""

[compaction.settings]
keep_tokens = "4000"

[summary]
chain = [
    "command",   # ours
    "extractive",
]
command = ['summarise', "--short"]

[models."gpt-4.1"]
context = 1_000_000

[[hooks.commands]]
on = ["pre_compact", "activated"]
command = ["true"]
time_limit = 9

[[hooks.commands]]
on = ["failed"]
command = ["false"]
time_limit = 2
'''


def written(folder: Path, text: str) -> Path:
    file = folder / "settings.toml"
    file.write_text(text, encoding="utf-8")
    return file


def mistakes(folder: Path, text: str, environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """What is wrong, without the folder."""
    with pytest.raises(InvalidSettingError) as refused:
        load(written(folder, text), environ or {})
    assert str(refused.value) == "\n".join(refused.value.mistakes)
    return tuple(one.replace(f"{folder}{os.sep}", "") for one in refused.value.mistakes)


def test_what_a_file_says_holds_and_the_rest_is_as_it_was(tmp_path: Path) -> None:
    settings = load(written(tmp_path, WRITTEN), {})

    assert settings.compaction.limit == 128_000
    assert settings.compaction.instructions == "Name the rivers.\n[summary]\n"
    assert settings.policy == ReserveHeadroom(keep_tokens=4000)
    assert settings.summary.chain == ("command", "extractive")
    assert settings.summary.command == ("summarise", "--short")
    assert settings.models["gpt-4.1"].context == 1_000_000
    assert [hook.time_limit for hook in settings.hooks.commands] == [9, 2]
    assert settings.hooks.commands[0].on == (Moment.PRE_COMPACT, Moment.ACTIVATED)
    assert settings.pins == Settings().pins
    assert settings.pins.rules() == PinRules()
    assert settings.pins.kinds == (Kind.DEVELOPER,)


def test_each_value_knows_where_it_came_from(tmp_path: Path) -> None:
    file = written(tmp_path, WRITTEN)

    settings = load(file, {"CUTBANK_SUMMARY_RETRIES": "5"})

    lines = {one.name: one.origin.line for one in listed(settings) if one.origin.file == str(file)}
    assert lines == {
        "compaction.limit": 3,
        "compaction.instructions": 4,
        "compaction.settings.keep_tokens": 10,
        "summary.chain": 13,
        "summary.command": 17,
        'models."gpt-4.1".context': 20,
        "hooks.commands[0].on": 23,
        "hooks.commands[0].command": 24,
        "hooks.commands[0].time_limit": 25,
        "hooks.commands[1].on": 28,
        "hooks.commands[1].command": 29,
        "hooks.commands[1].time_limit": 30,
    }
    assert str(settings.origin("compaction", "limit")) == f"{file}:3"
    assert str(settings.origin("summary", "retries")) == "CUTBANK_SUMMARY_RETRIES"
    assert str(settings.origin("summary", "backoff")) == "default"


def test_the_environment_goes_before_the_file(tmp_path: Path) -> None:
    environ = {
        "CUTBANK_COMPACTION_LIMIT": "none",
        "CUTBANK_COMPACTION_MINIMUM_GAIN": "0.25",
        "CUTBANK_COMPACTION_AUTO": "off",
        "CUTBANK_COMPACTION_SETTINGS__RESERVE_TOKENS": "9000",
        "CUTBANK_SUMMARY_CHAIN": "extractive",
        "CUTBANK_SUMMARY_COMMAND": '["a program", "x,y"]',
        "CUTBANK_PINS_KINDS": "user, developer",
        "CUTBANK_MODELS__gpt-4.1__OUTPUT": "32000",
        "CUTBANK_HOOKS_COMMANDS": '[{"on": ["failed"], "command": ["x"]}]',
        "CUTBANK_SUMMARY_MODEL": "",
        "CUTBANK_DB": "/elsewhere.db",
        "CUTBANK_SESSIONS": "somebody else's",
    }

    settings = load(written(tmp_path, WRITTEN), environ)

    assert settings.compaction.limit is None
    assert settings.compaction.minimum_gain == 0.25
    assert settings.compaction.auto is False
    assert settings.policy == ReserveHeadroom(9000, 4000)
    assert settings.summary.chain == ("extractive",)
    assert settings.summary.command == ("a program", "x,y")
    assert settings.pins.kinds == (Kind.USER, Kind.DEVELOPER)
    assert settings.models["gpt-4.1"].model_dump(exclude_none=True) == {
        "context": 1_000_000,
        "output": 32_000,
    }
    assert len(settings.hooks.commands) == 1
    assert settings.origin("hooks", "commands", 0, "command").variable == "CUTBANK_HOOKS_COMMANDS"
    assert str(settings.origin("hooks", "commands", 0, "time_limit")) == "default"
    assert settings.origin("compaction", "limit").variable == "CUTBANK_COMPACTION_LIMIT"
    assert settings.origin("compaction", "settings", "keep_tokens").line == 10


def test_a_table_in_a_variable_is_merged_with_the_files(tmp_path: Path) -> None:
    environ = {"CUTBANK_COMPACTION": '{"auto": false, "settings": {"reserve_tokens": 7}}'}

    settings = load(written(tmp_path, WRITTEN), environ)

    assert settings.compaction.limit == 128_000
    assert settings.compaction.auto is False
    assert settings.policy == ReserveHeadroom(7, 4000)
    assert settings.origin("compaction", "settings", "reserve_tokens").variable


def test_without_a_file_the_defaults_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))

    settings = load(environ={})

    assert settings == Settings()
    assert all(str(one.origin) == "default" for one in listed(settings))


def test_the_file_is_the_named_one_else_the_variables_else_the_usual(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    usual = user_config_path("cutbank", appauthor=False) / "settings.toml"
    usual.parent.mkdir(parents=True)
    usual.write_text("[summary]\nretries = 1\n", encoding="utf-8")
    of_variable, named = tmp_path / "variable.toml", tmp_path / "named.toml"
    of_variable.write_text("[summary]\nretries = 2\n", encoding="utf-8")
    named.write_text("[summary]\nretries = 4\n", encoding="utf-8")
    environ = {"CUTBANK_SETTINGS": str(of_variable)}

    assert load(environ={}).summary.retries == 1
    assert load(environ={"CUTBANK_SETTINGS": ""}).summary.retries == 1
    assert load(environ=environ).summary.retries == 2
    assert load(named, environ).summary.retries == 4


def test_a_file_that_was_named_has_to_be_there(tmp_path: Path) -> None:
    missing = tmp_path / "none.toml"

    for environ, path in (({}, missing), ({"CUTBANK_SETTINGS": str(missing)}, None)):
        with pytest.raises(InvalidSettingError, match=r"none\.toml does not exist"):
            load(path, environ)
    with pytest.raises(InvalidSettingError, match="cannot be read"):
        load(tmp_path, {})
    with pytest.raises(InvalidSettingError, match="needs the path"):
        load(" ", {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '[compaction]\n\nlimit = "many"',
            (':3: compaction.limit is "many"; it takes a whole number of tokens from 1, or none'),
        ),
        (
            "[compaction]\nauto = 1",
            ":2: compaction.auto is 1; it takes true or false",
        ),
        (
            "compaction.minimum_gain = 1.5",
            (":1: compaction.minimum_gain is 1.5; it takes a fraction of the view from 0 up to 1"),
        ),
        (
            "[compaction]\nlimit = 1.5",
            (":2: compaction.limit is 1.5; it takes a whole number of tokens from 1, or none"),
        ),
        (
            '"compaction" . "limt" = 3',
            ":1: compaction.limt is no setting; did you mean limit?",
        ),
        ("[sumary]\nretries = 3", ":1: sumary is no setting; did you mean summary?"),
        (
            "[tokens]\nq = 3",
            ":2: tokens.q is no setting; there is counter",
        ),
        ("summary = 4", ":1: summary is 4; it takes a table"),
        ("models.x = 4", ":1: models.x is 4; it takes a table"),
        (
            "[summary]\nchain = 4",
            ":2: summary.chain is 4; it takes a list of texts",
        ),
        (
            '[pins]\nkinds = [\n  "user",\n  "usr",\n]',
            (
                ':4: pins.kinds[1] is "usr"; did you mean user? It takes user or '
                "assistant or thinking or image or document or artifact or note or developer or "
                "tool_call or tool_result"
            ),
        ),
        (
            '[compaction]\nbetas = ["context-1m-2025-08-7"]',
            (
                ':2: compaction.betas[0] is "context-1m-2025-08-7", which is no beta that enlarges '
                "a window; did you mean context-1m-2025-08-07?"
            ),
        ),
        (
            '[tokens]\ncounter = "words"',
            (':2: tokens.counter is "words"; it takes auto or chars or o200k_base or cl100k_base'),
        ),
        (
            "[summary]\ntime_limit = nan",
            ":2: summary.time_limit is NaN; it takes a number of seconds from 0.1",
        ),
        (
            '[compaction]\npolicy = "reserve-hedroom"',
            (
                ':2: compaction.policy is "reserve-hedroom", which is no policy; did you '
                "mean reserve-headroom?"
            ),
        ),
        (
            "[compaction]\nsettings = {auto = 1,keep_token = 3}",
            (
                ":2: compaction.settings.auto is no setting of reserve-headroom; there "
                f"is {', '.join(setting.name for setting in fields(ReserveHeadroom))}"
            ),
        ),
        (
            "[compaction.settings]\nkeep_tokens = -3",
            (
                ":2: compaction.settings.keep_tokens is -3; it takes a whole number of "
                "tokens from 0, or none"
            ),
        ),
        (
            "[compaction.settings]\nkeep_tokens = 1979-05-27",
            (
                ':2: compaction.settings.keep_tokens is "1979-05-27"; it takes a whole '
                "number of tokens from 0, or none"
            ),
        ),
        (
            '[summary]\nchain = ["extractiv"]',
            (
                ':2: summary.chain[0] is "extractiv", which is no summariser; did you '
                "mean extractive?"
            ),
        ),
        (
            '[summary]\nchain = [\n"extractive",\n"llm"]',
            ":4: summary.chain[1] comes after extractive, which needs nothing: move it forward",
        ),
        (
            '[summary]\nchain = ["llm", "llm"]',
            ":2: summary.chain[1] names llm a second time: leave it out",
        ),
        (
            '[summary]\nchain = ["none"]',
            (
                ':2: summary.chain[0] is "none", which is no summariser; there is '
                "command, extractive, llm"
            ),
        ),
        (
            "[summary]\nchain = []",
            ":2: summary.chain names no summariser; `extractive` needs nothing",
        ),
        (
            '[summary]\nretries = 1\nchain = ["command"]',
            ":3: summary.chain names command, and summary.command names no program",
        ),
        (
            '[summary]\nsource = "originals"\nprompt = "iterative"',
            (
                ":3: summary.prompt is iterative, which builds on the earlier summary, "
                "and summary.source is originals, which passes it by: change one of them"
            ),
        ),
        (
            "[models.big]\ncontext = 1000\noutput = 2000",
            ":3: models.big.output is 2,000, more than the context of 1,000",
        ),
        (
            (
                '[[hooks.commands]]\non = ["failed"]\ncommand = ["x"]\n'
                "[[hooks.commands]]\non = []\ncommand = []"
            ),
            ":5: hooks.commands[1].on names no moment",
        ),
        (
            '[hooks]\n[[hooks.commands]]\non = ["failed"]',
            ":2: hooks.commands[0].command is missing; it takes a list of texts",
        ),
        ("a = " + "[" * 100_000, ": nests lists or tables too deeply"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_what_would_be_right(
    tmp_path: Path, text: str, said: str
) -> None:
    assert mistakes(tmp_path, text)[0] == f"settings.toml{said}"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[summary]\n[compaction\nlimit = 3", 2),
        ('[compaction]\npolicy = """\nx\n\n', 3),
        ("a = 1\na = 2\n", 2),
        ("[a]\n\n[a]\n", 3),
        ('a = "x\n', 1),
    ],
)
def test_what_is_not_toml_is_named_with_its_line(tmp_path: Path, text: str, line: int) -> None:
    (said,) = mistakes(tmp_path, text)

    assert said.startswith(f"settings.toml:{line}: is not TOML: ")
    assert "(at" not in said


def test_all_mistakes_are_named_at_once_and_in_order(tmp_path: Path) -> None:
    text = (
        '[summary]\nretries = "x"\n[compaction]\nlimit = 0\nsetings = {}\n'
        '[compaction.settings]\nkeep_tokens = "x"\n[[hooks.commands]]\non = ["faild"]\n'
    )
    environ = {"CUTBANK_TOKENS_COUNTER": "words", "CUTBANK_PINS": "3"}

    said = mistakes(tmp_path, text, environ)

    assert [one.split()[0] for one in said] == [
        "settings.toml:2:",
        "settings.toml:4:",
        "settings.toml:5:",
        "settings.toml:7:",
        "settings.toml:8:",
        "settings.toml:9:",
        "CUTBANK_PINS",
        "CUTBANK_TOKENS_COUNTER",
    ]


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        (
            "CUTBANK_COMPACTION_LIMIT",
            "many",
            'CUTBANK_COMPACTION_LIMIT is "many"; it takes a whole number of tokens from 1, or none',
        ),
        (
            "CUTBANK_COMPACTION_LIMT",
            "3",
            "CUTBANK_COMPACTION_LIMT is no setting; did you mean limit?",
        ),
        (
            "CUTBANK_COMPACTON_LIMIT",
            "3",
            "CUTBANK_COMPACTON_LIMIT sets nothing; did you mean COMPACTION for COMPACTON?",
        ),
        (
            "CUTBANK_HOOKS_COMMANDS",
            '[{"on": ["failed"]}]',
            "CUTBANK_HOOKS_COMMANDS: hooks.commands[0].command is missing; it takes a list",
        ),
        (
            "CUTBANK_HOOKS_COMMANDS",
            "[{",
            'CUTBANK_HOOKS_COMMANDS is "[{"; it takes a list of tables',
        ),
        (
            "CUTBANK_PINS_KINDS",
            "user,usr",
            "CUTBANK_PINS_KINDS: pins.kinds[1] is",
        ),
        (
            "CUTBANK_COMPACTION_POLICY",
            "none",
            'CUTBANK_COMPACTION_POLICY is "none", which is no policy',
        ),
        (
            "CUTBANK_COMPACTION_SETTINGS__KEEP_TOKENS__X",
            "3",
            'CUTBANK_COMPACTION_SETTINGS__KEEP_TOKENS__X: compaction.settings.keep_tokens is {"x"',
        ),
    ],
)
def test_a_mistake_in_the_environment_names_the_variable(
    tmp_path: Path, variable: str, value: str, said: str
) -> None:
    (sentence,) = mistakes(tmp_path, "", {variable: value})

    assert sentence.startswith(said)


def test_a_variable_cannot_lead_into_what_is_no_table(tmp_path: Path) -> None:
    variable = "CUTBANK_COMPACTION_SETTINGS__KEEP_TOKENS__X"

    (said,) = mistakes(tmp_path, "[compaction.settings]\nkeep_tokens = 3\n", {variable: "1"})

    assert said == f"{variable} sets nothing: compaction.settings.keep_tokens is no table"


@pytest.mark.parametrize(
    "text",
    [
        f'[summary]\nmodel = "{KEY}"',
        f'[summary]\ncommand = ["x", "--key={KEY}"]\n',
        '[summary]\n\napi_key = "abcdef"',
        '[summary.keys]\nopenai = "abcdef"',
        f'[models."x"]\ninput_usd = "{KEY}"',
        f"[summary]\n{KEY} = 3",
        f'[[hooks.commands]]\non=["failed"]\ncommand = ["curl", "-H", "X: Bearer {KEY[7:]}"]',
        '[summary]\nbase_url = "https://me:abcdef@example.com"',
        f'[summary]\nkey_from = "{KEY}"',
        f'[compaction.settings]\nkeep_tokens = "{KEY[7:]}abcdefghi"',
        f'[summary]\nretries = "{KEY[7:]}abcdefghi"',
        f'x = "{KEY}"\n["{KEY}"]\n["{KEY}"]',
    ],
)
def test_a_key_is_refused_and_never_repeated(tmp_path: Path, text: str) -> None:
    said = "\n".join(mistakes(tmp_path, text))

    for secret in (KEY, KEY[7:], "abcdef"):
        assert secret not in said
    assert ":1:" in said or ":2:" in said or ":3:" in said


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("CUTBANK_SUMMARY_API_KEY", "abcdef"),
        ("CUTBANK_SUMMARY_MODEL", KEY),
        ("CUTBANK_SUMMARY_MODEL", "host=db password = hunter2"),
        ("CUTBANK_SUMMARY_RETRIES", "abcdef0123456789abcdef0123456789"),
        ("CUTBANK_HOOKS_COMMANDS", f'[{{"on": ["{KEY}"'),
    ],
)
def test_a_key_in_a_variable_is_refused_and_never_repeated(
    tmp_path: Path, variable: str, value: str
) -> None:
    (said,) = mistakes(tmp_path, "", {variable: value})

    assert said.startswith(variable)
    assert value not in said
    assert KEY not in said


def test_ordinary_values_are_not_taken_for_keys() -> None:
    for value in (
        "us.anthropic.claude-sonnet-4-20250514-v1:0",
        "openrouter:anthropic/claude-haiku-4.5",
        "https://example.com:8080/v1",
        "/usr/local/bin/summarise",
        "0123456789abcdef",
        "Basic knowledge of rivers",
        "send --password=$SECRET",
    ):
        assert not holds_a_key(value)
    assert not any(names_a_key(name) for name in ("keep_tokens", "key_from", "tokens", "monkey"))
    assert shown("x" * 100).endswith("…")


def test_a_file_of_an_editor_of_windows_is_read(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_bytes(b'\xef\xbb\xbf[summary]\r\nretries = 7\r\nmodel = """a\r\nb"""\r\n')

    settings = load(file, {})

    assert settings.summary.retries == 7
    assert settings.origin("summary", "model").line == 3


def test_a_file_that_is_no_text_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_bytes(b"[summary]\n# caf\xe9\n")

    with pytest.raises(InvalidSettingError, match=r"settings\.toml:2: is not UTF-8"):
        load(file, {})


def test_settings_cannot_be_changed_and_take_none_in_words() -> None:
    with pytest.raises(ValidationError):
        Settings().summary.retries = 3  # type: ignore[misc]
    assert SummarySettings(model="none").model is None
    assert Settings(summary=SummarySettings(retries=4)) != Settings()


def test_every_setting_says_what_it_is_for() -> None:
    for path, section in sections(Settings):
        for name in section.model_fields:
            about = told(section, name)
            if about.section is None:
                assert about.scalar.help, f"{path}.{name}"
            if about.scalar.type in {int, float}:
                assert about.scalar.unit, f"{path}.{name}"


def sections(section: type[Section], path: str = "") -> Iterator[tuple[str, type[Section]]]:
    yield path, section
    for name in section.model_fields:
        if below := told(section, name).section:
            yield from sections(below, f"{path}.{name}")


def test_a_summariser_of_ones_own_is_found_by_its_entry_point(tmp_path: Path) -> None:
    package = tmp_path / "mine-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[cutbank.summarisers]\nmine = mine:Mine\n")
    file = written(tmp_path, '[summary]\nchain = ["mine", "extractive"]')
    code = (
        "from cutbank.adapters.settings.load_settings import load\n"
        f"print(load({str(file)!r}, {{}}).summary.chain)"
    )

    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        text=True,
    )

    assert done.stdout == "('mine', 'extractive')\n"


def paths_in(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if path:
        yield path
    if isinstance(value, dict | list):
        below = value.items() if isinstance(value, dict) else enumerate(value)
        for key, one in below:
            yield from paths_in(one, (*path, key))


LINES = '''\
title = "a # b"  # c = 3
"quoted \\"key\\"".'and dotted' . bare-1 = 1
inline = { a = 1, b.c = [ 2, { d = 3 } ], "e}" = "}" }
many = [
  1, # one ]
  [ 2,
    3 ],
  { x = """
[no]
y = 1""" },
]
quoted = [ """a"""", "b", """"c""""", "d" ]
when = 1979-05-27 07:32:00.5Z
[table]
text = """
[[not.one]]
key = "value" \\""" """""
literal = \'\'\'
[nor.this]
\\\'\'\'
after = 4
[[list.of]]
a = 5
[list.of.below]
b = 6
[[list.of.below2]]
c = 7
[[list.of.below2]]
[[list.of]]
a = 8
'''


def test_lines_are_found_whatever_stands_around_them() -> None:
    lines = lines_of(LINES)

    assert set(lines) == set(paths_in(tomllib.loads(LINES)))
    text = LINES.split("\n")
    by_line = {path: text[line - 1].strip() for path, line in lines.items()}
    assert by_line['quoted "key"', "and dotted", "bare-1"].startswith('"quoted')
    assert by_line["inline", "b", "c", 1, "d"].startswith("inline")
    assert by_line["many", 0] == "1, # one ]"
    assert by_line["many", 1, 1] == "3 ],"
    assert by_line["many", 2] == '{ x = """'
    assert by_line["table", "after"] == "after = 4"
    assert by_line["list", "of", 0, "below", "b"] == "b = 6"
    assert by_line["list", "of", 0, "below2", 0, "c"] == "c = 7"
    assert by_line["list", "of", 1, "a"] == "a = 8"


NAMES = st.sampled_from(["a", "b-1", '"q.r"', "'l[]'", '"\\u00e9 = #"'])
TEXTS = st.sampled_from(['"x # ["', "'y]'", '"""\n[z]\nk = "v"\n"""', "'''\n}'''", '"\\""'])


@st.composite
def values(draw: st.DrawFn, depth: int = 0) -> str:
    """A value in TOML: a marker in angle brackets for each place that is told apart by its line."""
    kinds = ["number", "text", "date", *(["list", "table"] if depth < 3 else [])]
    match draw(st.sampled_from(kinds)):
        case "number":
            return f"{draw(st.integers(0, 9))}.5"
        case "text":
            return draw(TEXTS)
        case "date":
            return "1979-05-27T07:32:00Z"
        case "list":
            items = draw(st.lists(values(depth + 1), max_size=4))
            gap = draw(st.sampled_from([", ", ",\n  ", ", # no ]\n"]))
            return f"[{draw(st.sampled_from(['', chr(10)]))}{gap.join(items)}\n]"
        case _:
            keys = draw(st.lists(NAMES, max_size=3, unique=True))
            pairs = [f"{key} = {draw(values(depth + 1))}" for key in keys]
            return "{ " + ", ".join(pairs) + " }"


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, list[int]]:
    """A document of one pair after another, and the line that each begins in."""
    text, begins = "", []
    for number in range(draw(st.integers(1, 6))):
        text += draw(
            st.sampled_from(["", "\n", "# a = [\n", f"[t{number}.u]\n", f"[[l.m{number}]]\n"])
        )
        begins.append(text.count("\n") + 1)
        text += f"k{number} = {draw(values())}{draw(st.sampled_from(['', '  # x']))}\n"
    return text, begins


@given(documents())
def test_every_place_of_any_document_has_its_line(document: tuple[str, list[int]]) -> None:
    text, begins = document

    lines = lines_of(text)

    assert set(lines) == set(paths_in(tomllib.loads(text)))
    for number, line in enumerate(begins):
        assert [lines[path] for path in lines if path[-1] == f"k{number}"] == [line]


@given(st.text(alphabet="ab.=[]{}\"'#\n\\ ,1", max_size=60))
def test_lines_are_found_in_whatever_is_toml(text: str) -> None:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return

    assert set(lines_of(text)) == set(paths_in(document))


@given(
    st.dictionaries(
        st.sampled_from(["compaction", "summary.chain", "pins.kinds", "models", "hooks.commands"])
        | st.sampled_from(["compaction.settings", "tokens", "hooks", "summary.time_limit", "x"]),
        values(),
        max_size=4,
    )
)
def test_whatever_a_file_says_is_settings_or_a_named_mistake(
    tmp_path_factory: pytest.TempPathFactory, said: dict[str, str]
) -> None:
    text = "\n".join(f"{key} = {value}" for key, value in said.items())
    file = tmp_path_factory.getbasetemp() / "any.toml"
    file.write_text(text, encoding="utf-8")

    wrong: tuple[str, ...] = ()
    try:
        settings = load(file, {})
    except InvalidSettingError as error:
        wrong = error.mistakes
    else:
        assert list(listed(settings))

    assert all(one.startswith(f"{file}:") for one in wrong)
