"""Each provider's real client in turn, a server for it, and proof that it asked nobody else."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from loopback.answers import Says, in_turn
from loopback.asked import SUMMARY, Asked, keys_alone
from loopback.offline import elsewhere
from loopback.providers import DIALECTS, Provider
from loopback.server import loopback


@pytest.fixture(params=DIALECTS, ids=str)
def provider(request: pytest.FixtureRequest) -> Provider:
    found: Provider = request.param
    return found


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    keys_alone(monkeypatch, tmp_path)


@pytest.fixture(autouse=True)
def only_the_loopback() -> Iterator[None]:
    """Nothing that a test here does may reach beyond this machine."""
    with elsewhere() as seen:
        yield
    assert seen == []


@pytest.fixture
def asked(provider: Provider) -> Iterator[Asked]:
    with loopback(in_turn(Says(SUMMARY))) as server:
        yield Asked(provider, server)
