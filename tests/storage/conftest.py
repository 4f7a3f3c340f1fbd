"""Keep what tests of the storage write out of the home of the user who runs them."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server's read models go there."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
