"""A shell that asks what a word may become is told: verbs, options, sessions, policies."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import cutbank
from cutbank.adapters.interfaces.command_line.cli import main
from cutbank.adapters.interfaces.command_line.completion import WordStart, join_broken_words
from cutbank.adapters.interfaces.command_line.verbs import VERBS
from cutbank.adapters.runtime.sessions.session_store import open_store
from cutbank.domain.policies.catalog import ALIASES, DEFAULT_POLICY, POLICIES
from cutbank.domain.policies.policy import get_presets, list_settings

PROGRAM = [sys.executable, "-m", "cutbank"]
PRESET = next(
    f"{name}@{preset}" for name, policy in POLICIES.items() for preset in get_presets(policy)
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
def test_verbs_and_options_are_completed(offered: Offered) -> None:
    assert offered("cutbank ") == list(VERBS)
    assert offered("cutbank comp") == ["compact"]
    assert offered("cutbank --json re") == [verb for verb in VERBS if verb.startswith("re")]
    assert offered("cutbank basalt") == []
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
            for preset in get_presets(policy)
            for name in (policy.name, *(a for a, meant in ALIASES.items() if meant == policy.name))
        ),
    ]

    assert sorted(offered("cutbank compact s --policy ")) == sorted(every)
    assert offered(f"cutbank compact s --policy {PRESET[:-1]}") == [PRESET]
    assert offered(f"cutbank compact s --policy={PRESET[:-1]}") == [PRESET]


def test_settings_are_completed_for_the_policy_that_is_named(offered: Offered) -> None:
    for name, policy in POLICIES.items():
        known = [f"{setting.name}=" for setting in list_settings(policy)]
        found = offered(f"cutbank compact s --policy {name} --set ")
        assert [word for word in found if word.find("=") == len(word) - 1] == known
    assert offered("cutbank compact s --policy basalt --set ") == []
    choices = list_settings(POLICIES[DEFAULT_POLICY])[0]
    assert offered(f"cutbank compact s --set {choices.name}=n") == [f"{choices.name}=none"]


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


BROKEN = [
    ("cutbank comp", 1, ("cutbank comp", 1, "")),
    ("cutbank", 1, ("cutbank |", 1, "")),
    ("cutbank compact s --policy kd", 4, ("cutbank compact s --policy kd", 4, "")),
    ("cutbank compact s --policy kdcube @", 5, ("cutbank compact s --policy |", 4, "kdcube@")),
    ("c compact s --policy kdcube @ as", 6, ("c compact s --policy as", 4, "kdcube@")),
    ("c compact s --policy = kd", 5, ("c compact s --policy kd", 4, "")),
    ("c compact s --policy =", 4, ("c compact s --policy |", 4, "")),
    ("c compact --policy = a @ b --set x", 8, ("c compact --policy a@b --set x", 5, "")),
    ("c compact --set a-key = ya", 5, ("c compact --set ya", 3, "a-key=")),
]


def test_words_that_bash_breaks_are_joined() -> None:
    wrong = []
    for words, current, (line, at, before) in BROKEN:
        typed, found, begun = join_broken_words(words.split(), current)
        joined = [word or "|" for word in typed], found, begun
        if joined != (line.split(), at, WordStart(before)):
            wrong.append((words, current, joined))

    assert not wrong


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not on this machine")
def test_bash_completes_what_it_breaks(tmp_path: Path) -> None:
    """As bash does it, with the script that the program prints."""
    program = tmp_path / "cutbank"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(PROGRAM)} "$@"\n', encoding="utf-8")
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
    assert completed("compact", "s", "--policy", name, "@", preset[:-1]) == [preset]
