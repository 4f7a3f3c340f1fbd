"""Line by line what TunaCode answered: retention-window as it shipped, its form and its dialect."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from dialects.tunacode import (
    CompactionRecord,
    injected,
    loaded,
    messages_json,
    saved,
)
from dialects.tunacode_requests import Controller, Outcome
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
    record: CompactionRecord | None


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
    return Told(window, names, [*begins, len(items) + 1], earlier(vector))


def earlier(vector: Vector) -> CompactionRecord | None:
    """The record that the session held: of its newest summary, and how many there were."""
    texts = [block["text"] for block in vector["input"] if block["kind"] == "summary"]
    if not texts:
        return None
    before = texts[-2] if len(texts) > 1 else None
    return CompactionRecord(texts[-1], 1, 1, 1, len(texts), before, "2026-01-01T00:00:00+00:00")


def policy(vector: Vector, preset: str) -> RetentionWindow:
    found = build_policy(
        f"tunacode@{preset}",
        {name: vector["config"][name] for name in ("keep_recent_tokens", "reserve_tokens")},
    )
    assert isinstance(found, RetentionWindow)
    return found


def controller(vector: Vector, told: list[str] | None = None) -> Controller:
    def writes(said: str, previous: str | None) -> str:
        if told is not None:
            told.append(said)
        if vector["config"]["summarizer_raises"]:
            raise RuntimeError("the provider is away")
        return "" if vector["config"]["summarizer_empty"] else "SUMMARY TEXT"

    return Controller(policy(vector, "as_shipped"), writes, auto=vector["config"]["auto_compact"])


def trigger(vector: Vector) -> Trigger:
    return Trigger.MANUAL if vector["config"]["force"] else Trigger.THRESHOLD


def index(told: Told, at: int) -> int:
    """An item as the message that begins with it; 0 where nothing is cut."""
    if not at:
        return 0
    assert at + 1 in told.starts, "the cut parts a message"
    return told.starts.index(at + 1)


def ids(told: Told, items: Sequence[Item]) -> list[str]:
    return list(dict.fromkeys(told.names[item.position] for item in items))


def outcome(vector: Vector) -> tuple[Told, Outcome]:
    here = told(vector, trigger(vector))
    return here, controller(vector).checked(here.window, here.record)


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


@pytest.mark.claim("S2.16", "S2.17")
@FOLDERS
def test_vectors_have_the_same_outcomes(folder: str) -> None:
    for vector in lines_of(folder, "tunacode"):
        expected, name = vector["expected"], vector["vector"]
        here, got = outcome(vector)
        again = replace(here.window, trigger=Trigger.THRESHOLD)
        kept = replace(again, items=got.kept)
        second = controller(vector).checked(again, got.record, was_tried=got.was_tried)
        following = controller(vector).checked(kept, got.record)

        assert (got.status, got.reason) == (expected["status"], expected["reason"]), name
        assert ids(here, got.kept) == expected["kept_ids"], name
        assert ids(here, got.gone) == expected["summarised_ids"], name
        assert sum(1 for _ in iter_message_spans_back(got.gone)) == expected["cut_index"], name
        assert got.splits_turn == expected["splits_turn"], name
        assert second.reason == expected["second_call_reason"], name
        assert {"status": following.status, "reason": following.reason} == expected[
            "next_request"
        ], name


@pytest.mark.claim("S2.1", "S2.8", "S2.9")
@FOLDERS
def test_vectors_have_the_same_record_and_are_shown_the_same(folder: str) -> None:
    for vector in lines_of(folder, "tunacode"):
        expected, name = vector["expected"], vector["vector"]
        here, got = outcome(vector)
        if "record" in expected:
            assert got.record is not None, name
            record: dict[str, Any] = got.record.to_dict()
            del record["last_compacted_at"]
            assert record == expected["record"], name
            trip = CompactionRecord.from_dict(got.record.to_dict()) == got.record
            assert trip == expected["record_roundtrip"], name
            assert loaded(saved(got.record)) == got.record, name
        else:
            assert got.record == here.record, name
        if "serialized" in expected:
            said: list[str] = []
            controller(vector, said).checked(here.window, here.record)
            assert said == [expected["serialized"]], name
            assert TunacodeTemplate().render_conversation(got.gone) == expected["serialized"], name


@pytest.mark.claim("S2.29", "S2.30", "S2.31")
@FOLDERS
def test_vectors_are_sent_with_the_same_summary_in_front(folder: str) -> None:
    for vector in lines_of(folder, "tunacode"):
        expected, name = vector["expected"], vector["vector"]
        _, got = outcome(vector)
        messages = messages_json(got.kept)
        sent = injected(messages, got.record)

        first = sent[0]["content"][0]["text"] if len(sent) > len(messages) else None
        assert first == expected["injected_first_text"], name
        assert (injected(sent, got.record) == sent) == expected["inject_idempotent"], name
        assert sent[len(sent) - len(messages) :] == messages, name
