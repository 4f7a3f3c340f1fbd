"""Line by line what TunaCode answered: retention-window as it shipped, and its form."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import pytest
from neutral_blocks import block_of, images_of, is_cut_off, turn_of
from vector_files import FOLDERS, Vector, lines_of

from cutbank.domain.compaction_events import Trigger
from cutbank.domain.item import Item
from cutbank.domain.messages import iter_message_spans_back
from cutbank.domain.policies.catalog import build_policy
from cutbank.domain.policies.retention_window import RetentionWindow
from cutbank.domain.summaries.templates import TunacodeTemplate
from cutbank.domain.window import Window

UNSENT = {"turn_header", "artifact", "note", "developer", "summary"}
"""Neutral blocks of which TunaCode has no message: those and their summary are told apart."""


class Told(NamedTuple):
    """A vector in cutbank's words."""

    window: Window
    names: dict[int, str]
    """Each item's block in the vector, by its position; images have their prompt's."""
    starts: list[int]
    """Where each message begins; and one past the end."""


def told(vector: Vector, trigger: Trigger = Trigger.THRESHOLD) -> Told:
    items: list[Item] = []
    names: dict[int, str] = {}
    starts: dict[str, int] = {}
    for neutral in vector["input"]:
        if neutral["kind"] in UNSENT:
            continue
        for block in (block_of(neutral), *images_of(neutral)):
            at = len(items) + 1
            names[at] = neutral["id"]
            starts.setdefault(neutral["id"], at)
            item = Item(at, block, turn_of(neutral), 1, is_unfinished=is_cut_off(neutral))
            items.append(item)
    window = Window(
        items=tuple(items), after=len(items), limit=vector["config"]["max_tokens"], trigger=trigger
    )
    begins = [starts[ids[0]] for ids in vector["expected"]["message_block_ids"]]
    return Told(window, names, [*begins, len(items) + 1])


def policy(vector: Vector, preset: str) -> RetentionWindow:
    found = build_policy(
        f"tunacode@{preset}",
        {name: vector["config"][name] for name in ("keep_recent_tokens", "reserve_tokens")},
    )
    assert isinstance(found, RetentionWindow)
    return found


def index(told: Told, at: int) -> int:
    """An item as the message that begins with it; 0 where nothing is cut."""
    if not at:
        return 0
    assert at + 1 in told.starts, "the cut parts a message"
    return told.starts.index(at + 1)


def ids(told: Told, items: Sequence[Item]) -> list[str]:
    return list(dict.fromkeys(told.names[item.position] for item in items))


@pytest.mark.claim("S2.50")
@FOLDERS
def test_vectors_are_measured_as_by_the_original(folder: str) -> None:
    for vector in lines_of(folder, "tunacode"):
        here = told(vector)
        items, by = here.window.items, policy(vector, "as_shipped")
        sizes = [
            by.count_tokens(items[start:end]) for start, end in iter_message_spans_back(items)
        ][::-1]
        assert sizes == vector["expected"]["message_tokens"], vector["vector"]
        got = [
            [here.names[item.position] for item in items[start:end]]
            for start, end in iter_message_spans_back(items)
        ][::-1]
        assert [list(dict.fromkeys(names)) for names in got] == vector["expected"][
            "message_block_ids"
        ], vector["vector"]


@pytest.mark.claim("S2.2", "S2.4")
@FOLDERS
def test_vectors_have_the_same_trigger_and_boundaries(folder: str) -> None:
    for vector in lines_of(folder, "tunacode"):
        expected, name, here = vector["expected"], vector["vector"], told(vector)
        shipped, later = policy(vector, "as_shipped"), policy(vector, "later")
        forced = replace(here.window, trigger=Trigger.MANUAL)

        assert shipped.fires(here.window) == expected["trigger"], name
        assert index(here, shipped.find_cut(here.window)) == expected["boundary"], name
        assert index(here, shipped.find_cut(forced)) == expected["boundary"], name
        items = here.window.items
        ends = [start - 1 for start in here.starts[1:]]
        valid = [index(here, at) for at in ends if shipped.is_valid_cut(items, at)]
        assert valid == expected["valid_boundaries"], name
        assert {
            "boundary": index(here, later.find_cut(here.window)),
            "force_boundary": index(here, later.find_cut(forced)),
        } == expected["later_00d8fd27"], name


@pytest.mark.claim("S2.8", "S2.9")
@FOLDERS
def test_vectors_leave_the_same_and_show_the_summariser_the_same(folder: str) -> None:
    for vector in lines_of(folder, "tunacode"):
        expected, name = vector["expected"], vector["vector"]
        forced = Trigger.MANUAL if vector["config"]["force"] else Trigger.THRESHOLD
        here, by = told(vector, forced), policy(vector, "as_shipped")
        if expected["status"] != "compacted":
            assert expected["reason"] != "below_threshold" or not by.fires(here.window), name
            assert expected["reason"] != "no_valid_boundary" or not by.find_cut(here.window), name
            continue
        at = by.find_cut(here.window)
        gone, kept = here.window.items[:at], here.window.items[at:]

        assert ids(here, gone) == expected["summarised_ids"], name
        assert ids(here, kept) == expected["kept_ids"], name
        assert sum(1 for _ in iter_message_spans_back(gone)) == expected["cut_index"], name
        splits = bool(gone and kept) and gone[-1].turn == kept[0].turn
        assert splits == expected["splits_turn"], name
        assert TunacodeTemplate().render_conversation(gone) == expected["serialized"], name
