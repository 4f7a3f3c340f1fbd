"""A session with something in it."""

import pytest
from short_sessions import said

from cutbank import StoredSession


@pytest.fixture
def five(session: StoredSession) -> list[int]:
    """Five questions in the session; their positions."""
    return [session.append(said(f"q{number}")).last for number in range(5)]
