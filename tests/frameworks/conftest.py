"""The store and the model's server that the tests of all adapters share."""

from collections.abc import Iterator

import pytest
from loopback.answers import Says
from loopback.server import Loopback, loopback

import cutbank
from cutbank import SessionStore


@pytest.fixture
def opened(database: str) -> Iterator[SessionStore]:
    with cutbank.open(database) as store:
        yield store


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[Loopback]:
    """A model on the loopback that answers by its module's `answer_with_a_call`."""
    answer = getattr(request.module, "answer_with_a_call", lambda _: Says("Hello to you."))
    with loopback(answer) as server:
        yield server
