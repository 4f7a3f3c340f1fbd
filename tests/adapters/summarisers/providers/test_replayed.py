"""A replay asks each provider's real client once, and from then on nobody: it is kept."""

from pathlib import Path
from typing import Any

import pytest
from databases import on_sqlite
from loopback.answers import Answer, Refuses, Says, Why, in_turn
from loopback.asked import Asked
from loopback.providers import DIALECTS, KEY, Provider

from cutbank import Block, StoredSession
from cutbank.adapters.analysis.replaying.replay_result import Replay
from cutbank.adapters.settings.settings import Settings
from cutbank.domain.errors import MissingSummariesError

pytestmark = on_sqlite


@pytest.fixture(
    params=[DIALECTS[0], *(pytest.param(each, marks=pytest.mark.slow) for each in DIALECTS[1:])],
    ids=str,
)
def provider(request: pytest.FixtureRequest) -> Provider:
    """One of them is enough where time is short."""
    found: Provider = request.param
    return found


@pytest.fixture
def talk(session: StoredSession, asked: Asked) -> StoredSession:
    """A session whose settings name the loopback as where the model is."""
    summary = {
        "model": asked.provider.model,
        "base_url": asked.provider.base_url(asked.server.url),
        "retries": 0,
    }
    session.store.go_by(Settings.model_validate({"summary": summary}))
    for turn in range(12):
        session.append(Block.user(f"question {turn} about the parser " + "q" * 200))
        session.append(Block.assistant(f"answer {turn}: it has no rule " + "a" * 200))
    return session


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "summaries.db"


def replayed(talk: StoredSession, kept: Path, **how: Any) -> Replay:
    small = {"keep_tokens": "300", "reserve_tokens": "300"}
    return talk.replay(
        "pi", settings=small, limit=1_000, budget=400, summariser="llm", cache=kept, **how
    )


def test_what_a_provider_wrote_is_replayed_without_it(
    asked: Asked, talk: StoredSession, kept: Path
) -> None:
    first = replayed(talk, kept, allow_llm=True)
    requests = len(asked.server.requests)
    asked.server.script = in_turn(Refuses(Why.INTERNAL))
    again = replayed(talk, kept)

    assert first.summarisers == {"llm": len(first.compactions)}
    assert requests >= len(first.compactions) > 1
    assert again.calls == first.calls
    assert len(asked.server.requests) == requests
    written = [one.summary for one in again.compactions if one.summary]
    assert all(one.model and one.usage for one in written)
    assert all("Comments in the parser" in one.text for one in written)


def test_nobody_is_asked_without_leave(asked: Asked, talk: StoredSession, kept: Path) -> None:
    with pytest.raises(MissingSummariesError, match="`replay --allow-llm` asks it"):
        replayed(talk, kept)

    assert asked.server.requests == []


@pytest.mark.parametrize(
    "failure",
    [Refuses(Why.WRONG_KEY), Refuses(Why.OVERLOADED), Refuses(Why.UNKNOWN_MODEL)],
    ids=["wrong key", "overloaded", "unknown model"],
)
def test_where_a_provider_fails_it_is_told_what_stood_in_and_nothing_is_kept(
    asked: Asked, talk: StoredSession, kept: Path, failure: Answer
) -> None:
    asked.server.script = in_turn(failure)

    done = replayed(talk, kept, allow_llm=True)

    assert done.summarisers == {"extractive": len(done.compactions)}
    assert done.stood_in == len(done.compactions) > 0
    complaints = [complaint for one in done.compactions for complaint in one.refused]
    assert all(said.startswith("llm: ") and "\n" not in said for said in complaints)
    assert not any(KEY in said for said in complaints)
    with pytest.raises(MissingSummariesError):
        replayed(talk, kept)


def test_a_draft_that_the_gate_refuses_is_refused_again_and_nobody_asked_again(
    asked: Asked, talk: StoredSession, kept: Path
) -> None:
    asked.server.script = in_turn(Says('<tool_call>{"name": "read", "arguments": {}}</tool_call>'))

    first = replayed(talk, kept, allow_llm=True)
    requests = len(asked.server.requests)
    again = replayed(talk, kept)

    assert first.stood_in == len(first.compactions) > 0
    assert requests > 0
    assert again.calls == first.calls
    assert len(asked.server.requests) == requests
