"""A shell that asks what a word may become is told: verbs, options, sessions, policies."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from databases import on_sqlite

import cutbank
from cutbank.adapters.interfaces.command_line.cli import main
from cutbank.adapters.interfaces.command_line.shell_completion import Begun, rejoined
from cutbank.adapters.interfaces.command_line.verbs import VERBS
from cutbank.adapters.runtime.sessions.session_store import open_store
from cutbank.domain.policies.catalog import ALIASES, DEFAULT, POLICIES
from cutbank.domain.policies.policy import presets_of, settings_of

from .conftest import Run

PROGRAM = [
    sys.executable,
    "-c",
    "from cutbank.adapters.interfaces.command_line.cli import main; main()",
]
PRESET = next(
    f"{name}@{preset}" for name, policy in POLICIES.items() for preset in presets_of(policy)
)


Offered = Callable[..., list[str]]


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What a shell is told that asks by these variables."""

    def telling(**environ: str) -> str:
        with monkeypatch.context() as patch:
            patch.setenv("COLUMNS", "40")
            for name, value in environ.items():
                patch.setenv(name, value)
            with pytest.raises(SystemExit) as exited:
                main([])
        assert not exited.value.code
        said = capsys.readouterr()
        assert said.err == ""
        return said.out

    return telling


@pytest.fixture
def offered(told: Callable[..., str]) -> Offered:
    """What zsh is told at the end of a line, but for the help beside it."""

    def offering(line: str) -> list[str]:
        said = told(_CUTBANK_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS=line)
        if said == "_files\n":
            return []
        words = said.partition("((")[2].rpartition("))")[0].splitlines()
        return [word.split('"')[1] for word in words]

    return offering


@pytest.mark.claim("S2.39")
def test_verbs_are_completed(offered: Offered) -> None:
    assert offered("cutbank ") == list(VERBS)
    assert offered("cutbank comp") == ["compact"]
    assert offered("cutbank --json re") == [verb for verb in VERBS if verb.startswith("re")]
    assert offered("cutbank basalt") == []


def test_options_are_completed(offered: Offered) -> None:
    assert {"--policy", "--set", "--dry-run", "--db", "--json"} <= set(
        offered("cutbank compact s --")
    )
    assert offered("cutbank compact s --dry") == ["--dry-run"]


def test_policies_are_completed_with_their_presets(offered: Offered) -> None:
    every = [
        *POLICIES,
        *ALIASES,
        *(
            f"{name}@{preset}"
            for policy in POLICIES.values()
            for preset in presets_of(policy)
            for name in (policy.name, *(a for a, meant in ALIASES.items() if meant == policy.name))
        ),
    ]

    assert sorted(offered("cutbank compact s --policy ")) == sorted(every)
    assert offered(f"cutbank compact s --policy {PRESET[:-1]}") == [PRESET]
    assert offered(f"cutbank compact s --policy={PRESET[:-1]}") == [PRESET]


def test_settings_are_completed_for_the_policy_that_is_named(offered: Offered) -> None:
    for name, policy in POLICIES.items():
        known = [f"{setting.name}=" for setting in settings_of(policy)]
        found = offered(f"cutbank compact s --policy {name} --set ")
        assert [word for word in found if word.find("=") == len(word) - 1] == known
    assert offered("cutbank compact s --policy basalt --set ") == []
    choices = settings_of(POLICIES[DEFAULT])[0]
    assert offered(f"cutbank compact s --set {choices.name}=n") == [f"{choices.name}=none"]


@on_sqlite
def test_sessions_are_completed_from_the_database_that_is_named(
    offered: Offered, address: str, talk: Path, tmp_path: Path
) -> None:
    with open_store(address) as store:
        store.session("table").append(cutbank.Block.user("hi"))
        store.session("tab stop").append(cutbank.Block.user("hi"))
        store.session("tall", namespace="elsewhere").append(cutbank.Block.user("hi"))
    other = tmp_path / "other.db"
    with open_store(str(other)) as store:
        store.session("tarn").append(cutbank.Block.user("hi"))

    assert offered("cutbank compact ta") == ["table", "talk"]
    assert offered("cutbank show --namespace elsewhere ta") == ["tall"]
    assert offered(f"cutbank --db {other} compact ta") == ["tarn"]
    assert offered(f"cutbank compact --db {other} ta") == ["tarn"]
    assert offered("cutbank compact --db nowhere.db ta") == []


@pytest.mark.parametrize(
    ("words", "current", "expected"),
    [
        ("cutbank comp", 1, ("cutbank comp", 1, "")),
        ("cutbank", 1, ("cutbank |", 1, "")),
        ("cutbank compact s --policy kd", 4, ("cutbank compact s --policy kd", 4, "")),
        ("cutbank compact s --policy kdcube @", 5, ("cutbank compact s --policy |", 4, "kdcube@")),
        ("c compact s --policy kdcube @ as", 6, ("c compact s --policy as", 4, "kdcube@")),
        ("c compact s --policy = kd", 5, ("c compact s --policy kd", 4, "")),
        ("c compact s --policy =", 4, ("c compact s --policy |", 4, "")),
        ("c compact --policy = a @ b --set x", 8, ("c compact --policy a@b --set x", 5, "")),
        ("c compact --set a-key = ya", 5, ("c compact --set ya", 3, "a-key=")),
    ],
)
def test_words_that_bash_breaks_are_joined(
    words: str, current: int, expected: tuple[str, int, str]
) -> None:
    line, at, before = expected

    typed, found, begun = rejoined(words.split(), current)

    assert [word or "|" for word in typed] == line.split()
    assert (found, begun) == (at, Begun(before))


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not on this machine")
def test_bash_completes_what_it_breaks(tmp_path: Path) -> None:
    """As bash does it, with the script that the program prints."""
    program = tmp_path / "cutbank"
    program.write_text(f"#!{PROGRAM[0]}\n{PROGRAM[2]}\n", encoding="utf-8")
    program.chmod(0o700)
    script = subprocess.run(
        [*PROGRAM, "--show-completion", "bash"],
        capture_output=True,
        check=True,
        env=os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
        text=True,
    ).stdout

    def completed(*words: str) -> list[str]:
        quoted = " ".join(f"'{word}'" for word in words)
        asked = f"COMP_WORDS=(cutbank {quoted}); COMP_CWORD={len(words)}\n"
        reply = f'_cutbank_completion {program}; printf "%s\\n" "${{COMPREPLY[@]}}"'
        bash = ["bash", "--norc", "-c", f"{script}\n{asked}{reply}"]
        return subprocess.run(bash, capture_output=True, check=True, text=True).stdout.split()

    name, _, preset = PRESET.partition("@")
    assert completed("comp") == ["compact"]
    assert preset in completed("compact", "s", "--policy", name, "@")
    assert completed("compact", "s", "--policy", name, "@", preset[:-1]) == [preset]


def test_fish_is_told_one_word_in_each_line(told: Callable[..., str]) -> None:
    asked = {"_CUTBANK_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    for name, policy in POLICIES.items():
        line = f"cutbank compact s --policy {name} --set "
        words = [
            row.partition("\t")[0] for row in told(**asked, _TYPER_COMPLETE_ARGS=line).splitlines()
        ]
        assert all("=" in word for word in words)
        assert {word.partition("=")[0] for word in words} == {
            setting.name for setting in settings_of(policy)
        }


@on_sqlite
def test_each_shell_has_a_script(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    for shell in ("bash", "zsh", "fish", "powershell"):
        answer = run("--show-completion", shell)
        assert answer.code == 0
        assert "_CUTBANK_COMPLETE" in answer.out
