"""A log with something of everything in it, and its read models."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from read_model_rows import rows_of

import cutbank
from cutbank import Block, SessionStore, ToolCall, ToolResult
from cutbank.adapters.storage.read_models.read_models import ReadModels

Opening = Callable[..., ReadModels]


def talk(store: SessionStore, key: str, turns: int, words: str = "clay and silt") -> None:
    """Turns of a prompt, a call with its result, and an answer; every fifth result is large."""
    session = store.session(key)
    for turn in range(turns):
        call = f"{key} {turn}"
        session.append(
            Block.user(f"{words}, asks {call}"),
            ToolCall(tool_call_id=call, name="bash", arguments={"command": f"make {turn}"}),
            ToolResult(tool_call_id=call, content=f"{words}\n" * (900 if turn % 5 == 0 else 9)),
            Block.assistant(f"{words}, answers {call}"),
        )


def check_whole(models: ReadModels, opening: Opening) -> None:
    """The file holds what a new one does that takes in the log at once."""
    whole = opening("whole.db")
    whole.catch_up()
    assert rows_of(models) == rows_of(whole)


@pytest.fixture
def opening(store: SessionStore, tmp_path: Path) -> Iterator[Opening]:
    """Opens read models of the store, in a file of that name; they are closed in the end."""
    opened: list[ReadModels] = []

    def opens(name: str = "models.db") -> ReadModels:
        path = name if name.startswith("file:") else str(tmp_path / name)
        opened.append(ReadModels(store.events, path))
        return opened[-1]

    yield opens
    for models in opened:
        models.close()


@pytest.fixture
def models(opening: Opening) -> ReadModels:
    return opening()


@pytest.fixture
def other(tmp_path: Path) -> Iterator[SessionStore]:
    with cutbank.open(tmp_path / "another.db") as store:
        yield store
