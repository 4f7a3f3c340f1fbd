"""Each provider's real client in turn, a server for it, and proof that it asked nobody else."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from loopback.answers import Says, in_turn
from loopback.asked import Asked
from loopback.conversation import SUMMARY
from loopback.offline import elsewhere
from loopback.providers import PROVIDERS, VARIABLES, Provider
from loopback.server import loopback


@pytest.fixture(params=PROVIDERS, ids=str)
def provider(request: pytest.FixtureRequest) -> Provider:
    found: Provider = request.param
    return found


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every provider's key, and nothing of what this machine may know of providers."""
    for name in (*VARIABLES, "GEMINI_API_KEY", "AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.delenv(name, raising=False)
    for each in PROVIDERS:
        for name, value in each.variables.items():
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))


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
