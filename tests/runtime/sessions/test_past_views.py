"""A coordinate names one view for ever, whatever is decided later."""

from typing import Any

import pytest
from opened_stores import store_of
from short_sessions import compacted, said, words

from cutbank import SessionStore, StoredSession, verify
from cutbank.domain.errors import NotFoundError


def test_reverting_serves_what_was_before(session: StoredSession, five: list[int]) -> None:
    whole = session.view().entries
    first = compacted(session, five[1])
    served = session.view().entries
    second = compacted(session, five[3])

    assert session.revert() == second.boundary
    assert session.view().entries == served
    assert session.revert() == first.boundary
    assert session.view().entries == whole
    assert session.view().summary is None
    with pytest.raises(NotFoundError, match="no compaction to revert"):
        session.revert()
    third = compacted(session, five[2])
    assert words(session.view()) == ["q2", "q3", "q4"]
    assert session.revert() == third.boundary
    assert session.view().entries == whole
    assert verify(store_of(session)).is_ok


def test_a_past_view_uses_what_was_in_effect(session: StoredSession, five: list[int]) -> None:
    compacted(session, five[2])
    session.append(said("q5"))

    assert words(session.view(at=five[3])) == ["q0", "q1", "q2", "q3"]
    assert words(session.view(at=five[4])) == ["q2", "q3", "q4"]
    assert words(session.view(at=five[4], lineage_version=0)) == ["q0", "q1", "q2", "q3", "q4"]


def test_lineages_are_views_of_their_own(session: StoredSession, five: list[int]) -> None:
    compacted(session, five[2], lineage="what if")

    assert session.log.lineages == ["what if"]
    assert words(session.view()) == ["q0", "q1", "q2", "q3", "q4"]
    assert words(session.view(lineage="what if")) == ["q2", "q3", "q4"]


def test_a_coordinate_that_does_not_exist_is_named(session: StoredSession, five: list[int]) -> None:
    compacted(session, five[2], lineage="other")

    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"at": 999}, f"no position 999: it ends at {five[-1]}"),
        ({"at": 0}, "positions begin at 1"),
        ({"lineage": "x"}, r"no lineage 'x' \(there is: main, other\)"),
        ({"lineage": "other", "lineage_version": 99}, "no version 99"),
    )
    for coordinate, says in wrong:
        with pytest.raises(NotFoundError, match=says):
            session.view(**coordinate)


def test_a_session_that_does_not_exist_is_named(store: SessionStore) -> None:
    with pytest.raises(NotFoundError, match="there is: none yet"):
        store.session("x", create=False)
    for number in range(7):
        store.session(f"s{number}")
    with pytest.raises(NotFoundError, match=r"\(there is: s0, s1, s2, s3, s4 and more\)"):
        store.session("x", create=False)
