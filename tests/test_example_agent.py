"""An agent lives through compactions, refusals and its own death, and nothing is lost."""

import json
import os
import runpy
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import randrange, uniform

import pytest
from loopback.agent_model import AgentModel, is_agents, until
from loopback.answers import Waits
from loopback.providers import KEY
from loopback.server import Loopback, loopback
from processes import Killed
from provider_rules import check_anthropic

import cutbank
from cutbank import Block, BlockKind, StoredSession, ToolCall, ToolResult, verify

AGENT = Path(__file__).parents[1] / "scripts" / "example_agent.py"
SCRIPT = runpy.run_path(str(AGENT))
TURNS = 200
HOLDS, LIMIT = 11_000, 12_000
"""Tokens that the model holds, and that the agent believes it to hold."""


@dataclass
class Agents:
    """Processes of the agent, one after the other, on one database."""

    database: str
    server: Loopback
    acknowledged: list[tuple[int, str]] = field(default_factory=list)
    """Position and kind of what they said is stored."""

    @contextmanager
    def started(self) -> Iterator[subprocess.Popen[str]]:
        command = [sys.executable, str(AGENT), self.database]
        keys = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": self.server.url}
        with subprocess.Popen(
            [*command, "--turns", str(TURNS), "--limit", str(LIMIT)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | keys,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def kill_after(self, lines: int, lag_s: float) -> None:
        """Kill it as soon as it has said so many lines, or a little later."""
        with self.started() as process:
            assert process.stdout
            said = [process.stdout.readline() for _ in range(lines)]
            time.sleep(lag_s)
            process.kill()
            self._take("".join(said) + process.communicate()[0])
        Killed.count += 1

    def kill_while_a_summary_is_written(self) -> None:
        def count_summaries() -> int:
            return sum(not is_agents(request) for request in self.server.requests)

        model, before = self.server.script, count_summaries()
        self.server.script = until(model, Waits(), summary=2)
        with self.started() as process:
            self.server.wait_until(lambda: count_summaries() >= before + 2, "a second summary")
            process.kill()
            self._take(process.communicate()[0])
        Killed.count += 1
        self.server.script = model

    def run(self) -> None:
        with self.started() as process:
            said, complaints = process.communicate()
            assert (process.returncode, complaints) == (0, "")
            self._take(said)

    def _take(self, said: str) -> None:
        whole = said[: said.rfind("\n") + 1]
        words = (line.split() for line in whole.splitlines())
        self.acknowledged += [(int(position[1:]), kind) for position, kind in words]


@pytest.mark.slow
def test_an_agent_that_is_killed_twice_in_200_turns_loses_nothing(database: str) -> None:
    model = AgentModel(HOLDS)

    with loopback(model) as server:
        agents = Agents(database, server)
        # Any moment will do, and another one each time.
        agents.kill_after(lines=randrange(200, 500), lag_s=uniform(0, 0.01))  # noqa: S311
        agents.kill_while_a_summary_is_written()
        agents.run()
        requests = [request for request in server.requests if is_agents(request)]

    assert len(requests) > 2 * TURNS
    for request in requests:
        assert check_anthropic(request.body) == []
        users = [turn for turn in request.body["messages"] if turn["role"] == "user"]
        assert SCRIPT["GOAL"] in json.dumps(users)
    assert model.refused, "no request was ever too long"
    with cutbank.open(database) as store:
        session = store.session("example", create=False)
        check_log(session, agents.acknowledged)
        check_compactions(session)
        assert verify(store).violations == []


def check_log(session: StoredSession, acknowledged: list[tuple[int, str]]) -> None:
    """All that was said is there once, and what was acknowledged is where it was said to be."""
    stored = {recalled.position: recalled.block for recalled in session.recall(search="")}
    blocks = list(stored.values())
    users = [block.text for block in blocks if block.kind is BlockKind.USER]
    calls = [block.tool_call_id for block in blocks if isinstance(block, ToolCall)]
    answered = [block.tool_call_id for block in blocks if isinstance(block, ToolResult)]

    assert users == [SCRIPT["prompt"](turn) for turn in range(1, TURNS + 1)]
    assert len(set(calls)) == len(calls) == TURNS
    assert sorted(answered) == sorted(calls)
    assert not [kind for position, kind in acknowledged if stored[position].kind != kind]
    assert len(acknowledged) == len(dict(acknowledged))
    # What was under way at a kill may be stored though nothing acknowledged it.
    assert 0 <= len(stored) - len(acknowledged) <= 2 * 2
    assert not session.log.state.open_calls
    assert isinstance(blocks[-1], Block)


def check_compactions(session: StoredSession) -> None:
    """There were ten at least, and models wrote the summaries."""
    writers = []
    version: int | None = None
    while (view := session.view(lineage_version=version)).boundary:
        assert view.summary
        writers.append(view.summary.summarizer)
        version = view.boundary.originator_version - 1
    assert len(writers) >= 10
    assert set(writers) == {"llm"}
