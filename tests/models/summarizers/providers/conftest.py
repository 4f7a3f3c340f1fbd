"""Each provider's real client in turn, a server for it, and proof that it asked nobody else."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from botocore.loaders import JSONFileLoader
from loopback.answers import Says, in_turn
from loopback.asked import SUMMARY, Asked, keys_alone
from loopback.offline import elsewhere
from loopback.providers import DIALECTS, Provider
from loopback.server import loopback


@pytest.fixture(scope="session", autouse=True)
def read_botocore_once() -> Iterator[None]:
    """Each client of Bedrock's reads the same megabytes of JSON when it is made."""
    read = cache(JSONFileLoader().load_file)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JSONFileLoader, "load_file", lambda _, path: read(path))
        yield


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
