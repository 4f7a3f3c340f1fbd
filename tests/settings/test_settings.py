"""Settings: what holds, where it came from, and how a mistake is named."""

import os
import re
from collections.abc import Mapping
from datetime import time
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from platformdirs import user_config_path

from cutbank.adapters.interfaces.commands.settings import list_effective_settings
from cutbank.adapters.settings.load_settings import load_settings
from cutbank.adapters.settings.section import has_key, is_key_name, show_value
from cutbank.adapters.settings.settings import IdleSettings, Settings
from cutbank.domain.blocks import BlockKind
from cutbank.domain.compaction_terms import PinRules
from cutbank.domain.errors import InvalidSettingError
from cutbank.domain.idle_rules import IdleRules, QuietHours
from cutbank.domain.policies.layered import Layered
from cutbank.domain.settings import Section, list_settings

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
command = ['summarize', "--short"]

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
        load_settings(written(folder, text), environ or {})
    assert str(refused.value) == "\n".join(refused.value.mistakes)
    return tuple(one.replace(f"{folder}{os.sep}", "") for one in refused.value.mistakes)


def test_what_a_file_says_holds_and_the_rest_is_as_it_was(tmp_path: Path) -> None:
    file = written(tmp_path, WRITTEN)

    settings = load_settings(file, {"CUTBANK_SUMMARY_RETRIES": "5"})

    assert settings.compaction.instructions == "Name the rivers.\n[summary]\n"
    assert settings.policy == Layered(keep_tokens=4000)
    assert settings.summary.chain == ("command", "extractive")
    assert settings.models["gpt-4.1"].context == 1_000_000
    assert [hook.time_limit for hook in settings.hooks.commands] == [9, 2]
    assert settings.hooks.commands[0].on == ("pre_compact", "activated")
    assert settings.pins == Settings().pins
    assert settings.pins.make_rules() == PinRules()
    assert settings.idle.make_rules() == IdleRules()
    origins = {one.name: str(one.origin) for one in list_effective_settings(settings)}
    assert sum(origin.startswith(str(file)) for origin in origins.values()) == 12
    expected = {
        "compaction.settings.keep_tokens": f"{file}",
        'models."gpt-4.1".context': f"{file}",
        "hooks.commands[1].on": f"{file}",
        "summary.retries": "CUTBANK_SUMMARY_RETRIES",
        "summary.source": "default",
    }
    assert origins.items() >= expected.items()


def test_every_setting_says_what_it_is_for_and_in_which_unit() -> None:
    sections: list[type[Section]] = [Settings]
    scalars = []
    for section in sections:
        for one in list_settings(section):
            if one.section:
                sections.append(one.section)
            else:
                scalars.append(one)

    assert len(scalars) > 30
    assert all(one.help for one in scalars)
    assert not [one for one in scalars if one.value_type in {int, float} and not one.unit]


def test_the_environment_goes_before_the_file(tmp_path: Path) -> None:
    environ = {
        "CUTBANK_COMPACTION_LIMIT": "none",
        "CUTBANK_COMPACTION_AUTO": "off",
        "CUTBANK_COMPACTION_SETTINGS__SUMMARY_TOKENS": "900",
        "CUTBANK_SUMMARY_CHAIN": "extractive",
        "CUTBANK_SUMMARY_COMMAND": '["a program", "x,y"]',
        "CUTBANK_PINS_KINDS": "user, developer",
        "CUTBANK_MODELS__gpt-4.1__OUTPUT": "32000",
        "CUTBANK_MODELS__Big__OUTPUT": "7",
        "CUTBANK_HOOKS_COMMANDS": '[{"on": ["failed"], "command": ["x"]}]',
        "CUTBANK_SUMMARY_MODEL": "",
        "CUTBANK_DB": "/elsewhere.db",
        "CUTBANK_SESSIONS": "somebody else's",
    }

    settings = load_settings(written(tmp_path, WRITTEN), environ)

    assert (settings.compaction.limit, settings.compaction.auto) == (None, False)
    assert settings.policy == Layered(summary_tokens=900, keep_tokens=4000)
    assert settings.summary.chain == ("extractive",)
    assert settings.summary.command == ("a program", "x,y")
    assert settings.pins.kinds == (BlockKind.USER, BlockKind.DEVELOPER)
    model = settings.models["gpt-4.1"]
    assert (model.context, model.output) == (1_000_000, 32_000)
    assert settings.models["Big"].output == 7
    assert len(settings.hooks.commands) == 1
    for name, origin in (("command", "CUTBANK_HOOKS_COMMANDS"), ("time_limit", "default")):
        assert str(settings.find_origin("hooks", "commands", 0, name)) == origin

    environ = {"CUTBANK_COMPACTION": '{"auto": false, "settings": {"summary_tokens": 7}}'}
    file = written(tmp_path, WRITTEN)
    settings = load_settings(file, environ)
    assert (settings.compaction.limit, settings.compaction.auto) == (128_000, False)
    origins = [str(settings.find_origin("compaction", name)) for name in ("limit", "auto")]
    assert origins == [str(file), "CUTBANK_COMPACTION"]
    nearer = environ | {"CUTBANK_COMPACTION_AUTO": "yes"}
    assert load_settings(file, nearer).compaction.auto
    assert settings.policy == Layered(summary_tokens=7, keep_tokens=4000)


def test_the_file_is_the_named_one_else_the_variables_else_the_usual(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    usual = user_config_path("cutbank", appauthor=False) / "settings.toml"
    usual.parent.mkdir(parents=True)
    of_variable, named = tmp_path / "variable.toml", tmp_path / "named.toml"
    for file, retries in ((usual, 1), (of_variable, 2), (named, 4)):
        file.write_text(f"[summary]\nretries = {retries}\n", encoding="utf-8")
    environ = {"CUTBANK_SETTINGS": str(of_variable)}

    assert load_settings(environ={}).summary.retries == 1
    assert load_settings(environ={"CUTBANK_SETTINGS": ""}).summary.retries == 1
    assert load_settings(environ=environ).summary.retries == 2
    assert load_settings(named, environ).summary.retries == 4

    # A file that was named has to be there.
    missing = tmp_path / "none.toml"
    refused: list[tuple[dict[str, str], Path | str | None, str]] = [
        ({}, missing, r"none\.toml is not a file"),
        ({"CUTBANK_SETTINGS": str(missing)}, None, r"none\.toml is not a file"),
        ({}, tmp_path, "is not a file"),
        ({}, " ", "needs the path"),
    ]
    for environ, path, says in refused:
        with pytest.raises(InvalidSettingError, match=says):
            load_settings(path, environ)


MISTAKES = [
    ('[compaction]\n\nlimit = "many"', ': compaction.limit is "many"; it takes a whole number'),
    ("[compaction]\nauto = 1", ": compaction.auto is 1; it takes true or false"),
    ("compaction.minimum_gain = 1.5", ": compaction.minimum_gain is 1.5; it takes a fraction of"),
    ('"compaction" . "limt" = 3', ": compaction.limt is no setting; did you mean limit?"),
    ("[sumary]\nretries = 3", ": sumary is no setting; did you mean summary?"),
    ("summary = 4", ": summary is 4; it takes a table"),
    ("[summary]\nchain = 4", ": summary.chain is 4; it takes a list of texts"),
    ('[pins]\nkinds = [\n"user",\n"usr",\n]', ': pins.kinds[1] is "usr"; did you mean user? It'),
    ('[compaction]\nbetas = ["context-1m-2025-08-7"]', "did you mean context-1m-2025-08-07?"),
    ('[tokens]\ncounter = "words"', ': tokens.counter is "words"; it takes auto or chars or'),
    ("[summary]\ntime_limit = nan", ": summary.time_limit is NaN; it takes a number of seconds"),
    ("[summary]\ntime_limit = inf", ": summary.time_limit is Infinity; it takes a number of sec"),
    ('[compaction]\npolicy = "reserve-hedroom"', "is no policy; did you mean reserve-headroom?"),
    (
        "[compaction]\nsettings = {auto = 1,keep_token = 3}",
        ": compaction.settings.auto is no setting of layered; there is threshold",
    ),
    ("[compaction.settings]\nkeep_tokens = 1979-05-27", 'keep_tokens is "1979-05-27"; it takes'),
    ('[summary]\nchain = ["extractiv"]', "is no summarizer; did you mean extractive?"),
    ('[summary]\nchain = [\n"extractive",\n"llm"]', ": summary.chain[1] comes after extractive"),
    ('[summary]\nchain = ["llm", "llm"]', ": summary.chain[1] names llm a second time: leave"),
    ("[summary]\nchain = []", ": summary.chain names no summarizer; `extractive` needs"),
    ('[summary]\nretries = 1\nchain = ["command"]', "and summary.command names no program"),
    ('[summary]\nsource = "originals"\nprompt = "policy"', ": summary.prompt is policy"),
    ("[models.big]\ncontext = 1000\noutput = 2000", ": models.big.output is 2,000, more than"),
    (
        "[[hooks.commands]]\non = []\ncommand = []",
        ": hooks.commands[0].command is []; it",
    ),
    ('[hooks]\n[[hooks.commands]]\non = ["failed"]', ": hooks.commands[0].command is missing"),
    ('[idle]\nquiet_hours = "22:00-24:00"', 'is "22:00-24:00"; it takes hours as 22:00-06:30 Eur'),
    ('[idle]\nquiet_hours = "06:00-06:00"', "which never ends: no work would be begun at all"),
    ('[idle]\nquiet_hours = "22:00-06:00 Europe/Berln"', "; did you mean Europe/Berlin?"),
    ('[idle]\nquiet_hours = "22:00-06:00 ../../etc"', "whose zone is not a time zone"),
    ("[idle]\nquiet_hours = 22", ": idle.quiet_hours is 22; it takes"),
    ("[idle]\nleast_utilization = 50", "is 50; it takes a fraction of the limit from 0 up to 1"),
    ('[idle]\nserve = "later"', ': idle.serve is "later"; it takes now or at-threshold'),
    ('[summary]\napi_key = "abcdef"', ": summary.api_key looks like a key, and keys do not"),
    ("a = " + "[" * 100_000, ": nests lists or tables too deeply"),
    ("[summary]\n[compaction\nlimit = 3", ": is not TOML: "),
    ('[compaction]\npolicy = """\nx\n\n', ": is not TOML: "),
    ("a = 1\na = 2\n", ": is not TOML: "),
]


def test_a_mistake_is_named_with_its_key_and_what_would_be_right(tmp_path: Path) -> None:
    for text, words in MISTAKES:
        said = mistakes(tmp_path, text)[0]

        assert said.startswith(f"settings.toml{words}" if words[0] == ":" else "settings.toml:")
        assert words in said


def test_all_mistakes_are_named_at_once(tmp_path: Path) -> None:
    text = (
        '[summary]\nretries = "x"\n[compaction]\nlimit = 0\nsetings = {}\n'
        '[compaction.settings]\nkeep_tokens = "x"\n[[hooks.commands]]\non = ["faild"]\n'
    )
    environ = {"CUTBANK_TOKENS_COUNTER": "words", "CUTBANK_PINS": "3"}

    said = mistakes(tmp_path, text, environ)

    keys = ["compaction.limit", "compaction.setings", "compaction.settings.keep_tokens"]
    keys += ["hooks.commands[0].command", "hooks.commands[0].on[0]", "summary.retries"]
    assert sorted(one.split()[1] for one in said[:-2]) == keys
    assert all(one.startswith("settings.toml: ") for one in said[:-2])
    assert [one.split()[0] for one in said[-2:]] == ["CUTBANK_PINS", "CUTBANK_TOKENS_COUNTER"]


def test_a_mistake_in_the_environment_names_the_variable(tmp_path: Path) -> None:
    deep = "COMPACTION_SETTINGS__KEEP_TOKENS__X"
    for variable, value, words in (
        ("COMPACTION_LIMIT", "many", ' is "many"; it takes a whole number of tokens from 1, or'),
        ("COMPACTION_LIMT", "3", " is no setting; did you mean limit?"),
        ("COMPACTON_LIMIT", "3", " sets nothing; did you mean COMPACTION for COMPACTON?"),
        ("HOOKS_COMMANDS", '[{"on": ["failed"]}]', ": hooks.commands[0].command is missing; it"),
        ("HOOKS_COMMANDS", "[{", ' is "[{"; it takes a list of tables'),
        ("PINS_KINDS", "user,usr", ": pins.kinds[1] is"),
        ("COMPACTION_POLICY", "none", ' is "none", which is no policy'),
        (deep, "3", ": compaction.settings.keep_tokens is {"),
    ):
        # Where the file has that table too, the variable is still the one to change.
        text = "[compaction.settings]\n" if variable == deep else ""
        (said,) = mistakes(tmp_path, text, {f"CUTBANK_{variable}": value})
        assert said.startswith(f"CUTBANK_{variable}{words}")

    text = "[compaction.settings]\nkeep_tokens = 3\n"
    (said,) = mistakes(tmp_path, text, {f"CUTBANK_{deep}": "1"})
    assert said.startswith(f"CUTBANK_{deep}: compaction.settings.keep_tokens is {{")


def test_a_key_is_refused_and_never_repeated(tmp_path: Path) -> None:
    for text in (
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
        f'[summary]\nretries = "{KEY}"',
        f'x = "{KEY}"\n["{KEY}"]\n["{KEY}"]',
    ):
        found = mistakes(tmp_path, text)
        assert len(set(re.findall(r"toml: (\S+)", "\n".join(found)))) == len(found), text
        said = "\n".join(found)
        assert not [secret for secret in (KEY, KEY[7:], "abcdef") if secret in said], text
        assert said.startswith("settings.toml: ")
    for variable, value in (
        ("CUTBANK_SUMMARY_API_KEY", "abcdef"),
        ("CUTBANK_SUMMARY_MODEL", KEY),
        ("CUTBANK_SUMMARY_MODEL", "host=db password = hunter2"),
        ("CUTBANK_SUMMARY_RETRIES", "abcdef0123456789abcdef0123456789"),
        ("CUTBANK_HOOKS_COMMANDS", f'[{{"on": ["{KEY}"'),
    ):
        (sentence,) = mistakes(tmp_path, "", {variable: value})
        assert sentence.startswith(variable)
        assert value not in sentence
        assert KEY not in sentence


def test_ordinary_values_are_not_taken_for_keys() -> None:
    values = ["us.anthropic.claude-sonnet-4-20250514-v1:0", "openrouter:anthropic/claude-haiku-4.5"]
    values += ["https://example.com:8080/v1", "/usr/local/bin/summarise", "0123456789abcdef"]
    values += ["Basic knowledge of rivers", "send --password=$SECRET"]
    assert not [value for value in values if has_key(value)]
    assert not any(is_key_name(name) for name in ("keep_tokens", "key_from", "tokens", "monkey"))
    assert show_value("x" * 100).endswith("…")


def test_a_file_is_read_only_as_utf_8(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_bytes(b'[summary]\r\nretries = 7\r\nmodel = """a\r\nb"""\r\n')
    assert load_settings(file, {}).summary.model == "a\nb"
    file.write_bytes(b"[summary]\n# caf\xe9\n")
    with pytest.raises(InvalidSettingError, match=r"settings\.toml: is not UTF-8"):
        load_settings(file, {})


ODD_VALUES = ["3", "-1.5", "nan", "true", "1979-05-27", '"x"', '""', "[]", '["x", 3]', "[[]]"]
ODD_VALUES += ["[{}]", "{}", "{x = 1}", '{x = {"" = [1]}}', '{on = ["failed"], command = "x"}']
NAMED = ["compaction", "summary.chain", "pins.kinds", "models", "hooks.commands", "hooks", "x"]
NAMED += ["compaction.settings", "tokens", "summary.time_limit", "context"]


@given(st.dictionaries(st.sampled_from(NAMED), st.sampled_from(ODD_VALUES), max_size=4))
def test_whatever_a_file_says_is_settings_or_a_named_mistake(
    tmp_path_factory: pytest.TempPathFactory, said: dict[str, str]
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.toml"
    file.write_text("\n".join(f"{key} = {value}" for key, value in said.items()), encoding="utf-8")

    wrong: tuple[str, ...] = ()
    try:
        assert list(list_effective_settings(load_settings(file, {})))
    except InvalidSettingError as error:
        wrong = error.mistakes

    assert all(one.startswith(f"{file}: ") for one in wrong)


@given(begins=st.times(), ends=st.times(), zone=st.sampled_from(["", "Europe/Berlin", " UTC"]))
def test_hours_are_read_as_they_are_written(begins: time, ends: time, zone: str) -> None:
    hours = (begins.replace(second=0, microsecond=0), ends.replace(second=0, microsecond=0))
    assume(hours[0] != hours[1])
    settings = IdleSettings(quiet_hours=f" {begins:%H:%M}-{ends:%H:%M} {zone} ")

    quiet = settings.make_rules().quiet_hours

    assert quiet == QuietHours(*hours, ZoneInfo(zone.strip() or "UTC"))
