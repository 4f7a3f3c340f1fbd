"""Line by line what TunaCode answered: retention-window as it shipped, and its form."""

from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from neutral_blocks import is_cut_off
from neutral_session import NeutralSession
from vector_files import FOLDERS, Vector, lines_of

from cutbank import Trigger, Window, get_policy
from cutbank.domain.item import iter_message_spans_back
from cutbank.domain.policies.reference.tunacode import TunacodeAsShipped
from cutbank.domain.summaries.templates import TunacodeTemplate

UNSENT = {"turn_header", "artifact", "note", "developer", "summary"}
"""Neutral blocks of which TunaCode has no message: those and their summary are told apart."""


class Told(NamedTuple):
    """A vector in cutbank's words."""

    session: NeutralSession
    window: Window
    starts: list[int]
    """The index of each message's first item; and one past the end."""


def told(vector: Vector, trigger: Trigger = Trigger.THRESHOLD) -> Told:
    session = NeutralSession(vector["input"])
    limit = vector["config"]["max_tokens"]
    window = session.window(limit, trigger, among=lambda block: block["kind"] not in UNSENT)
    broken_off = {session.position(one["id"]) for one in vector["input"] if is_cut_off(one)}
    items = tuple(
        replace(item, tokens=1, is_unfinished=item.position in broken_off) for item in window.items
    )
    first = {session.position(ids[0]) for ids in vector["expected"]["message_block_ids"]}
    starts = [index for index, item in enumerate(items) if item.position in first]
    return Told(session, replace(window, items=items), [*starts, len(items)])


def find_cut(policy: TunacodeAsShipped, window: Window) -> int:
    return policy.find_cut(window, policy.find_budget_index(window))


def policy(vector: Vector, preset: str) -> TunacodeAsShipped:
    names = ("keep_recent_tokens", "reserve_tokens")
    settings = {name: vector["config"][name] for name in names}
    found = get_policy(f"tunacode@{preset}", **settings)
    assert isinstance(found, TunacodeAsShipped)
    return found


def index(told: Told, at: int) -> int:
    """An item as the message that begins with it; 0 where nothing is cut."""
    assert at in told.starts or not at, "the cut parts a message"
    return told.starts.index(at) if at else 0


@pytest.mark.claim("S2.2", "S2.4", "S2.8", "S2.9", "S2.50")
@FOLDERS
def test_vectors_are_answered(folder: str) -> None:
    for vector in lines_of(folder, "tunacode"):
        found = {**measure(vector), **find_boundaries(vector)}
        expected = vector["expected"]
        forced = Trigger.MANUAL if vector["config"]["force"] else Trigger.THRESHOLD
        here, by = told(vector, forced), policy(vector, "as_shipped")
        if expected["status"] == "compacted":
            found |= compact(here, find_cut(by, here.window))
        else:
            assert expected["reason"] != "below_threshold" or not by.fires(here.window)
            assert expected["reason"] != "no_valid_boundary" or not find_cut(by, here.window)
        assert found == {name: expected[name] for name in found}, vector["vector"]


def measure(vector: Vector) -> dict[str, Any]:
    here, by = told(vector), policy(vector, "as_shipped")
    items = here.window.items
    messages = [items[start:end] for start, end in iter_message_spans_back(items)][::-1]
    return {
        "message_tokens": [by.count_tokens(message) for message in messages],
        "message_block_ids": [here.session.ids(message) for message in messages],
    }


def find_boundaries(vector: Vector) -> dict[str, Any]:
    here = told(vector)
    shipped, later = policy(vector, "as_shipped"), policy(vector, "later")
    forced = replace(here.window, trigger=Trigger.MANUAL)
    boundary = index(here, find_cut(shipped, here.window))
    assert index(here, find_cut(shipped, forced)) == boundary, vector["vector"]
    return {
        "trigger": shipped.fires(here.window),
        "boundary": boundary,
        "valid_boundaries": [
            index(here, at) for at in here.starts[1:] if shipped.is_valid_cut(here.window.items, at)
        ],
        "later_00d8fd27": {
            "boundary": index(here, find_cut(later, here.window)),
            "force_boundary": index(here, find_cut(later, forced)),
        },
    }


def compact(here: Told, at: int) -> dict[str, Any]:
    gone, kept = here.window.items[:at], here.window.items[at:]
    return {
        "summarised_ids": here.session.ids(gone),
        "kept_ids": here.session.ids(kept),
        "cut_index": sum(1 for _ in iter_message_spans_back(gone)),
        "splits_turn": bool(gone and kept) and gone[-1].turn == kept[0].turn,
        "serialized": TunacodeTemplate().render_conversation(gone),
    }
