"""An agent lives through compactions, refusals and its own death, and nothing is lost."""

import json
import os
import runpy
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import randrange

import pytest
from loopback.agent_model import AgentModel, is_agents, until
from loopback.answers import Gate, Request, Says, Waits
from loopback.providers import KEY
from loopback.server import Loopback, loopback
from processes import Killed
from provider_rules import check_anthropic

import cutbank
from cutbank import Block, StoredSession, ToolCall, ToolResult
from cutbank.adapters.analysis.verifier import verify
from cutbank.domain.blocks import Kind

AGENT = Path(__file__).parents[1] / "scripts" / "example_agent.py"
TURNS = 200
HOLDS = 11_000
"""Tokens that the model holds."""
LIMIT = 12_000
"""Tokens that the agent believes it to hold."""


@dataclass
class Agents:
    """Processes of the agent, one after the other, on one database."""

    database: str
    server: Loopback
    acknowledged: list[tuple[int, str]] = field(default_factory=list)
    """Position and kind of what they said is stored."""

    @contextmanager
    def started(self, turns: int = TURNS) -> Iterator[subprocess.Popen[str]]:
        command = [sys.executable, str(AGENT), self.database, "--turns", str(turns)]
        with subprocess.Popen(
            [*command, "--limit", str(LIMIT)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self._environment(),
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def _environment(self) -> Mapping[str, str]:
        keys = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": self.server.url}
        return {**os.environ, **keys}

    def killed_after(self, lines: int, lag: int) -> None:
        """Killed as soon as it has said so much, or a little later."""
        with self.started() as process:
            assert process.stdout
            said = [process.stdout.readline() for _ in range(lines)]
            for _ in range(lag):
                pass
            process.kill()
            self._take("".join(said) + process.communicate()[0])
        Killed.count += 1

    def killed_while_a_summary_is_written(self) -> None:
        model, gate = self.server.script, Gate()
        before = _summaries(self.server.requests)
        self.server.script = until(model, Waits(gate, Says("too late")), summary=2)
        with self.started() as process:
            self.server.wait_until(
                lambda: _summaries(self.server.requests) >= before + 2, "a second summary"
            )
            process.kill()
            self._take(process.communicate()[0])
        Killed.count += 1
        self.server.script = model

    def run(self) -> None:
        """To the end."""
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
        agents.killed_after(lines=randrange(200, 500), lag=randrange(300_000))  # noqa: S311
        agents.killed_while_a_summary_is_written()
        agents.run()
        requests = [request for request in server.requests if is_agents(request)]

    check_requests(requests)
    assert model.refused, "no request was ever too long"
    with cutbank.open(database) as store:
        session = store.session("example", create=False)
        check_log(session, agents.acknowledged)
        check_compactions(session)
        assert verify(store).violations == []


def check_requests(requests: list[Request]) -> None:
    """Each was legal, and each held what the user wants."""
    goal = runpy.run_path(str(AGENT))["GOAL"]

    assert len(requests) > 2 * TURNS
    for request in requests:
        assert check_anthropic(request.body) == []
        users = [turn for turn in request.body["messages"] if turn["role"] == "user"]
        assert goal in json.dumps(users)


def check_log(session: StoredSession, acknowledged: list[tuple[int, str]]) -> None:
    """All that was said is there once, and what was acknowledged is where it was said to be."""
    prompt = runpy.run_path(str(AGENT))["prompt"]
    stored = {recalled.position: recalled.block for recalled in session.recall(search="")}
    users = [block for block in stored.values() if block.kind is Kind.USER]
    calls = [block.tool_call_id for block in stored.values() if isinstance(block, ToolCall)]
    answered = Counter(
        block.tool_call_id for block in stored.values() if isinstance(block, ToolResult)
    )

    assert [user.text for user in users] == [prompt(turn) for turn in range(1, TURNS + 1)]
    assert len(calls) == TURNS
    assert answered == Counter(dict.fromkeys(calls, 1))
    for position, kind in acknowledged:
        assert stored[position].kind == kind
    assert len(acknowledged) == len({position for position, _ in acknowledged})
    # What was under way at a kill may be stored without that anybody heard of it.
    assert 0 <= len(stored) - len(acknowledged) <= 2 * 2
    assert not session.log.state.open_calls
    assert isinstance(list(stored.values())[-1], Block)


def check_compactions(session: StoredSession) -> None:
    """There were ten at least, and models wrote the summaries."""
    boundaries = []
    version: int | None = None
    while (view := session.view(lineage_version=version)).boundary:
        assert view.summary
        boundaries.append(view.summary.summarizer)
        version = view.boundary.originator_version - 1
    assert len(boundaries) >= 10
    assert set(boundaries) == {"llm"}


def _summaries(requests: list[Request]) -> int:
    return sum(not is_agents(request) for request in requests)
