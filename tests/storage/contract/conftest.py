"""Run every test of the storage contract on SQLite and on PostgreSQL."""

from pathlib import Path

import pytest
from databases import connected_to
from faulty import closing
from log_rows import Change

from cutbank import SessionStore
from cutbank.adapters.storage.event_log.recorder import Recorder


@pytest.fixture(params=["sqlite", "postgres"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def recorder(store: SessionStore) -> Recorder:
    return store.events.recorder


@pytest.fixture
def change(engine: str, database: str, store: SessionStore) -> Change:
    """Run a statement in the database behind the store's back."""
    del store  # which makes the database

    def changed(statement: str) -> None:
        if engine == "sqlite":
            with closing(Path(database)) as connection:
                connection.execute(statement)
        else:
            with connected_to(database) as server:
                server.execute(statement.encode())

    return changed
