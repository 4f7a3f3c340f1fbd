"""A session is found by a part of its name, by its title, or as the last one."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cutbank import Block
from cutbank.adapters.interfaces.command_line.sessions import _match_keys, shorten_names
from cutbank.adapters.runtime.sessions.session_store import open_store

from .conftest import Run

FIRST = "062a51f0-0000-4000-8000-000000000001"
SECOND = "062b51f0-0000-4000-8000-000000000002"


@pytest.fixture
def talks(run: Run, address: str) -> None:
    with open_store(address) as store:
        store.session(FIRST, title="Fix the cart").append(Block.user("Why is it wrong?"))
        store.session(f"{FIRST}/agent-77").append(Block.user("Look for vouchers."))
        store.session(SECOND).append(Block.user("Tidy the harbour"))


def test_a_word_that_means_one_session_is_enough(run: Run, talks: None) -> None:
    rows = {
        FIRST: FIRST,
        "062a": FIRST,
        "agent-7": f"{FIRST}/agent-77",
        "fix the cart": FIRST,
        "Tidy": SECOND,
        "last": SECOND,
    }

    assert {word: run("view", word, "--json").json["session"] for word in rows} == rows


def test_a_word_that_means_several_sessions_is_refused_in_one_line_with_all_of_them(
    run: Run, talks: None
) -> None:
    answer = run("view", "062")

    assert answer.code == 2
    assert answer.err.count("\n") == 1
    assert (
        f"'062' fits 2 sessions: {FIRST} (Fix the cart), {SECOND} (Tidy the harbour)" in answer.err
    )


def test_a_name_that_is_begun_opens_a_session_of_its_own(run: Run, talks: None) -> None:
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
