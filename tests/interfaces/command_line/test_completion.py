"""A shell that asks what a word may become is answered: verbs, options, sessions, policies."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import cutbank
from cutbank.adapters.interfaces.command_line.cli import main
from cutbank.adapters.interfaces.command_line.verbs import VERBS
from cutbank.adapters.runtime.sessions.session_store import open_store
from cutbank.domain.policies.catalog import ALIASES, DEFAULT_POLICY, POLICIES
from cutbank.domain.policies.policy import get_presets
from cutbank.domain.settings import list_settings

from .conftest import PROGRAM

NAMES = [*POLICIES, *ALIASES]
PRESETS = [
    f"{name}@{preset}"
    for name in NAMES
    for preset in get_presets(POLICIES[ALIASES.get(name, name)])
]
Offered = Callable[[str], list[str]]


@pytest.fixture
def offered(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Offered:
    """What zsh is offered at the end of a line, without the help for each word."""

    def offering(line: str) -> list[str]:
        with monkeypatch.context() as patch:
            patch.setenv("COLUMNS", "40")
            patch.setenv("_CUTBANK_COMPLETE", "complete_zsh")
            patch.setenv("_TYPER_COMPLETE_ARGS", line)
            with pytest.raises(SystemExit) as exited:
                main([])
        said = capsys.readouterr()
        assert (exited.value.code or 0, said.err) == (0, "")
        words = said.out.partition("((")[2].rpartition("))")[0].splitlines()
        return [word.split('"')[1] for word in words]

    return offering


@pytest.mark.claim("S2.39")
def test_verbs_and_options_are_completed(offered: Offered) -> None:
    assert offered("cutbank ") == list(VERBS)
    assert offered("cutbank comp") == ["compact"]
    assert offered("cutbank --json re") == [verb for verb in VERBS if verb.startswith("re")]
    assert offered("cutbank basalt") == []
    options = {"--policy", "--set", "--dry-run", "--db", "--json"}
    assert options <= set(offered("cutbank compact s --"))
    assert offered("cutbank compact s --dry") == ["--dry-run"]


def test_policies_are_completed_with_their_presets_and_settings(offered: Offered) -> None:
    begun = PRESETS[0][:-1]
    assert sorted(offered("cutbank compact s --policy ")) == sorted([*NAMES, *PRESETS])
    assert offered(f"cutbank compact s --policy {begun}") == [PRESETS[0]]
    assert offered(f"cutbank compact s --policy={begun}") == [PRESETS[0]]
    for name, policy in POLICIES.items():
        known = [f"{setting.name}=" for setting in list_settings(policy)]
        found = offered(f"cutbank compact s --policy {name} --set ")
        assert [word for word in found if word.find("=") == len(word) - 1] == known
    assert offered("cutbank compact s --policy basalt --set ") == []
    optional = next(one for one in list_settings(POLICIES[DEFAULT_POLICY]) if one.may_be_none)
    assert offered(f"cutbank compact s --set {optional.name}=n") == [f"{optional.name}=none"]


def test_sessions_are_completed_from_the_database_that_is_named(
    offered: Offered, address: str, talk: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.db"
    with open_store(address) as store, open_store(str(other)) as another:
        for session in (
            *(store.session("table"), store.session("tab stop"), another.session("tarn")),
            store.session("tall", namespace="elsewhere"),
        ):
            session.append(cutbank.Block.user("hi"))

    assert offered("cutbank compact ta") == ["table", "talk"]
    assert offered("cutbank show --namespace elsewhere ta") == ["tall"]
    assert offered(f"cutbank --db {other} compact ta") == ["tarn"]
    assert offered(f"cutbank compact --db {other} ta") == ["tarn"]
    assert offered("cutbank compact --db nowhere.db ta") == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not on this machine")
def test_bash_completes_a_policy(tmp_path: Path) -> None:
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
    asked = f"COMP_WORDS=(cutbank compact s --policy {DEFAULT_POLICY[:-1]}); COMP_CWORD=4"
    reply = f'_cutbank_completion {program}; printf "%s\\n" "${{COMPREPLY[@]}}"'
    bash = ["bash", "--norc", "-c", f"{script}\n{asked}\n{reply}"]

    done = subprocess.run(bash, capture_output=True, check=True, text=True)

    assert DEFAULT_POLICY in done.stdout.split()
