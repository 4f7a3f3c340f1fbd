"""Following is tested on one database: how events are stored is tested on both elsewhere."""

import pytest


@pytest.fixture
def engine() -> str:
    return "sqlite"
