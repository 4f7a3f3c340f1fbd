"""Sessions and blocks are found by what people write for them."""

import pytest
from clock import Clock
from hypothesis import example, given
from hypothesis import strategies as st

from cutbank import Block, InvalidPositionError, Ranges
from cutbank.adapters.interfaces.command_line.blocks import parse_handle, parse_handles
from cutbank.adapters.interfaces.command_line.sessions import _match_keys, shorten_names
from cutbank.adapters.runtime.sessions.session_store import open_store

from .conftest import Run, answered_wrongly

FIRST = "062a51f0-0000-4000-8000-000000000001"
SECOND = "062b51f0-0000-4000-8000-000000000002"
NAMES = {
    FIRST: FIRST,
    "062a": FIRST,
    "agent-7": f"{FIRST}/agent-77",
    "fix the cart": FIRST,
    "Tidy": SECOND,
    "last": SECOND,
}


def test_a_word_that_means_one_session_is_enough(run: Run, address: str, clock: Clock) -> None:
    with open_store(address, clock=clock) as store:
        store.session(FIRST, title="Fix the cart").append(Block.user("Why is it wrong?"))
        store.session(f"{FIRST}/agent-77").append(Block.user("Look for vouchers."))
        store.session(SECOND).append(Block.user("Tidy the harbour"))

    assert {word: run("view", word, "--json").json["session"] for word in NAMES} == NAMES
    both = f"'062' fits 2 sessions: {FIRST} (Fix the cart), {SECOND} (Tidy the harbour)"
    assert not answered_wrongly(run, [(["view", "062"], both)])
    # A name that is only begun opens a session of its own.
    run("append", "062a", "hi")
    run("append", "last", "ho")
    assert run("view", "062a", "--json").json["session"] == "062a"
    assert len(run("show", "062a", "--json").json["log"]) == 2


@example({"a//a", "a/"})
@example({"aaaaaaaaab", "aaaaaaaaaa"})
@given(st.sets(st.text("ab/-", min_size=1, max_size=14), min_size=1, max_size=8))
def test_the_name_that_a_list_shows_means_that_session_alone(keys: set[str]) -> None:
    for key, name in shorten_names(keys).items():
        assert name == key or _match_keys(name, keys) == [key]


def newest(back: int) -> int:
    """A session whose newest block is #100."""
    return 100 - back


HANDLES = [
    ("12", [(12, 12)]),
    ("#3-9", [(3, 9)]),
    ("#3-#9", [(3, 9)]),
    ("3..9", [(3, 9)]),
    ("3-9, 12 #15", [(3, 9), (12, 12), (15, 15)]),
    ("LAST", [(100, 100)]),
    ("last-3", [(97, 97)]),
    ("last-3..last", [(97, 100)]),
    ("90..last", [(90, 100)]),
    ("7,", [(7, 7)]),
]


def test_a_handle_is_read_as_people_write_it() -> None:
    assert not [row for row in HANDLES if parse_handles([row[0]], newest).runs != tuple(row[1])]
    never: dict[int, int] = {}  # only `last` asks for the newest
    words = ["12", "3-9"], ["3-9,#12"]
    assert parse_handles(words[0], never.__getitem__) == parse_handles(words[1], never.__getitem__)
    positions = [parse_handle(word, newest) for word in ("12", " #12 ", "last-1")]
    assert positions == [12, 12, 99]


def test_what_is_no_handle_is_refused() -> None:
    words = ["", ",", "x", "0", "#0", "-3", "3-", "9-3", "1..", "..", "#", "last-", "3-last"]
    words += ["1.5", "9" * 16, "9" * 5_000, "12;", "\u0663", "last..3"]
    for word in words:
        with pytest.raises(InvalidPositionError):
            pytest.fail(f"{word!r} is read as {parse_handles([word], newest)}")
    with pytest.raises(InvalidPositionError):
        parse_handle("3-9", newest)


@given(st.lists(st.integers(min_value=1, max_value=10**6), min_size=1))
def test_whatever_is_printed_of_handles_is_read_again(positions: list[int]) -> None:
    printed = Ranges.of(positions)

    assert parse_handles([str(printed)], newest) == printed
