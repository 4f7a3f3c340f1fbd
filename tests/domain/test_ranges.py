"""Ranges are sets: whatever Python's own sets say of the same positions, they say too."""

import pickle
from copy import copy
from operator import and_, or_, sub

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from cutbank.domain.ranges import Ranges

positions = st.sets(st.integers(min_value=1, max_value=40))
runs = st.lists(
    st.tuples(st.integers(min_value=1, max_value=40), st.integers(min_value=0, max_value=6)).map(
        lambda run: (run[0], run[0] + run[1])
    )
)


class Stored(BaseModel):
    ranges: Ranges


@given(positions)
def test_it_holds_what_it_was_made_of(held: set[int]) -> None:
    ranges = Ranges.of(held)

    assert list(ranges) == sorted(held)
    assert len(ranges) == len(held)
    assert bool(ranges) == bool(held)
    assert [position for position in range(60) if position in ranges] == sorted(held)


@given(runs)
def test_runs_that_overlap_or_touch_are_one(given_runs: list[tuple[int, int]]) -> None:
    ranges = Ranges(given_runs)

    assert set(ranges) == {
        position for first, last in given_runs for position in range(first, last + 1)
    }
    gaps = zip(ranges.runs, ranges.runs[1:], strict=False)
    assert all(last + 1 < first for (_, last), (first, _) in gaps)


@given(positions, positions)
def test_union_difference_and_intersection_are_those_of_sets(a: set[int], b: set[int]) -> None:
    for operation in (or_, sub, and_):
        assert operation(Ranges.of(a), Ranges.of(b)) == Ranges.of(operation(a, b))


@given(positions, positions)
def test_equal_sets_are_equal_however_they_came_about(a: set[int], b: set[int]) -> None:
    one, other = Ranges.of(a) | Ranges.of(b), Ranges.of([*b, *a, *b])

    assert (one, hash(one)) == (other, hash(other))
    assert (Ranges.of(a) == Ranges.of(b)) == (a == b)


@given(positions)
def test_it_is_stored_as_runs_and_read_back(held: set[int]) -> None:
    stored = Stored(ranges=Ranges.of(held))

    assert Stored.model_validate_json(stored.model_dump_json()) == stored
    assert Stored.model_validate(stored.model_dump()) == stored


@given(positions)
def test_a_deferred_set_is_the_one_that_was_stored(held: set[int]) -> None:
    text = Stored(ranges=Ranges.of(held)).model_dump_json().removeprefix('{"ranges":')[:-1]
    deferred = Ranges.defer(text)

    assert copy(pickle.loads(pickle.dumps(deferred))) == Ranges.of(held)  # noqa: S301 - our own
    assert Stored(ranges=deferred).ranges is deferred
    assert deferred.runs == Ranges.of(held).runs


def test_it_is_written_as_people_write_it() -> None:
    ranges = Ranges([(7, 7), (1, 3)])

    assert str(ranges) == "#1-3 #7"
    assert repr(ranges) == "Ranges([(1, 3), (7, 7)])"
    assert Stored(ranges=ranges).model_dump_json() == '{"ranges":[[1,3],[7,7]]}'


def test_a_span_that_ends_before_it_begins_is_empty_and_such_a_run_is_refused() -> None:
    assert Ranges.span(5, 4) == Ranges()
    assert list(Ranges.span(5, 5)) == [5]
    with pytest.raises(ValueError, match="a run ends before it begins: 5-4"):
        Ranges([(5, 4)])


def test_what_is_stored_as_anything_else_is_refused() -> None:
    rows: list[str] = ["[[0, 3]]", "[[5, 4]]", "[[1]]", "[1]", '["1-3"]', '"#1-3"']
    for stored in rows:
        with pytest.raises(ValidationError):
            Stored.model_validate_json(f'{{"ranges": {stored}}}')


def test_a_set_of_few_runs_is_small_whatever_it_holds() -> None:
    ranges = Ranges.span(1, 10**12) - Ranges.of([5])

    assert len(ranges.runs) == 2
    assert 10**12 in ranges
    assert 5 not in ranges
