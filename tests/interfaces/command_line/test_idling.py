"""Idle hours from the command line: work in them, see how the work stands, say when to wake."""

import json
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

import pytest

import cutbank
from cutbank import CompactionOptions, Parent
from cutbank.adapters.interfaces.command_line.sessions import session_to_json
from cutbank.adapters.runtime.sessions.session_store import open_store

from .conftest import Answer, Run

LONG = "the clay under the river bank slid in the night and nobody had seen it coming " * 160


@pytest.fixture
def work(run: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answer]:
    """Work once on sessions that are already due."""
    monkeypatch.setenv("CUTBANK_IDLE_LEAST_UTILIZATION", "0.05")
    monkeypatch.setenv("CUTBANK_PINS_FIRST_PROMPT", "false")

    def working(*words: str) -> Answer:
        with patch.dict(os.environ, CUTBANK_IDLE_TIME="0", CUTBANK_IDLE_CONCURRENCY="7"):
            return run("idle", "--once", *words)

    return working


def rest(address: str, *keys: str, namespace: str = "default") -> None:
    blocks = [cutbank.Block.user(f"{turn}: {LONG}") for turn in range(12)]
    with open_store(address) as store:
        for key in keys:
            store.session(key, namespace=namespace).append(*blocks)


def read_idle_states(run: Run) -> dict[str, str | None]:
    return {one["session"]: one["idle"] for one in run("sessions", "--json").json}


def test_what_is_due_in_the_named_namespaces_is_done_once_and_shown(
    run: Run, work: Callable[..., Answer], address: str
) -> None:
    rest(address, "one", "two")
    rest(address, "theirs", namespace="theirs")
    ours = ("--namespace", "default")

    done = work(*ours, "--json")
    again = work(*ours)
    status = run("idle", "--status", *ours, "--json").json

    assert (done.code, done.json["done"], done.json["failed"]) == (0, 2, 0)
    assert len(done.json["workers"]) == 1
    assert (again.code, again.out.splitlines()[0]) == (0, "nothing was to be done")
    assert again.out.splitlines()[1].split() == ["left", "alone", "compacted", "2"]
    assert (status["due"], status["done"], status["done_in_day"]) == (0, 2, 2)
    assert {one["session"] for one in status["done_lately"]} == {"one", "two"}
    assert len(run("idle", "--status", "--json", "--last", "1").json["done_lately"]) == 1
    said = run("idle", "--status").out
    assert re.search(r"^one\t.*\textractive\t", said, re.MULTILINE)
    assert re.search(r"^spend per hour +1$", said, re.MULTILINE)


def test_the_log_is_lines_for_people_or_one_json_object_each(
    work: Callable[..., Answer], address: str
) -> None:
    rest(address, "one")
    lines = work("--verbose").err.splitlines()
    rest(address, "two")
    objects = [json.loads(line) for line in work("--log", "json").err.splitlines()]
    rest(address, "three")

    assert any(" INFO " in line and " done session=one " in line for line in lines)
    assert any(
        " DEBUG " in line and line.endswith("began session=one namespace=default attempt=1")
        for line in lines
    )
    assert [line["about"] for line in objects] == ["started", "done", "stopping", "stopped"]
    assert (objects[1]["session"], objects[1]["level"]) == ("two", "info")
    assert work("--quiet").err == ""


@pytest.mark.usefixtures("work")
def test_sessions_are_listed_from_the_index_as_from_the_log_with_their_idle_state(
    run: Run, address: str, file: Path
) -> None:
    rest(address, "rests", "compacted")
    with open_store(address) as store:
        for key in ("small", "calls", "sleeps", "closed"):
            store.session(key).append(cutbank.Block.user("hello"))
        store.session("calls").append(cutbank.ToolCall(tool_call_id="c1", name="make"))
        cutbank.schedule_wake(store.session("sleeps"), datetime.now(UTC) + timedelta(hours=5))
        store.session("closed").close()
        store.session("helps", parent=Parent(namespace="default", key="small"))
        store.session("rests").fork("forked", at=4).append(cutbank.Block.user("and now?"))
        compacted = store.session("compacted")
        compacted.compact(options=CompactionOptions(settings={"keep_tokens": "1000"}))
        compacted.log.compactor("a what-if")
        known = [session_to_json(session) for session in store.sessions()]
    run("idle", "--once")  # by the settings nothing is at rest yet

    listed = run("sessions", "--json").json

    assert [{name: one[name] for name in known[0]} for one in listed] == known
    states = {"rests": "resting", "small": "small", "calls": "waiting", "sleeps": "asleep"}
    states |= {"closed": "closed", "helps": "sub-agent", "forked": "small"}
    assert read_idle_states(run) == states | {"compacted": "compacted"}
    until = {one["session"]: one["idle_until"] for one in listed}
    assert (until["rests"] is None, until["small"]) == (False, None)

    # Where no index can be kept, sessions are read from the log.
    index = file.with_name("test.read.db")
    index.unlink()
    index.mkdir()
    answer = run("sessions", "--json")
    assert (answer.code, "so nothing is known of idle work" in answer.err) == (0, True)
    assert [one["session"] for one in answer.json] == [one["session"] for one in listed]
    assert {one["idle"] for one in answer.json} == {None}
    assert set(answer.json[0]) == set(listed[0])


def test_an_agent_says_when_it_goes_on_and_takes_it_back(run: Run, long_talk: Path) -> None:
    slept = run("wake", "long", "--in", "20m", "--reason", "the build", "--json").json
    assert read_idle_states(run) == {"long": "asleep"}
    at = run("wake", "long", "--at", "2999-01-31T09:00+02:00", "--json").json
    back = run("wake", "long", "--cancel", "--json").json

    wakes = datetime.fromisoformat(slept["wake_at"])
    assert timedelta(minutes=15) < wakes - datetime.now(UTC) <= timedelta(minutes=20)
    assert read_idle_states(run) == {"long": "small"}
    assert (at["wake_at"], back["wake_at"]) == ("2999-01-31T07:00:00+00:00", None)
    assert "goes on at" in run("wake", "long", "--in", "1d").out
