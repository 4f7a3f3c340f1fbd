"""A compaction of Codex is a boundary: what it kept is named, what it brought is added."""

from pathlib import Path

import pytest
from claude_code_talk import Reading
from codex_talk import Rollout, message, read_at, sealed

from cutbank.adapters.transcripts.formats.steps import (
    Append,
    Aside,
    Compacted,
    Instead,
    Rewind,
    Shortened,
)
from cutbank.adapters.transcripts.formats.summary_mark import MARK
from cutbank.domain.blocks import Block, Kind
from cutbank.domain.ranges import Ranges
from cutbank.projections.rendering import summary_message


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rollout.jsonl"


def boundary(reading: Reading) -> Compacted:
    (compacted,) = reading.of(Compacted)
    return compacted


def brought(reading: Reading) -> list[str]:
    """What follows the boundary."""
    after = reading.steps[reading.steps.index(boundary(reading)) :]
    return [step.block.text for step in after if isinstance(step, Append)]


def talk() -> Rollout:
    told = Rollout()
    told.developer("rules")
    told.user("first")  # line 3
    told.says("one")
    told.user("second")  # line 5
    told.says("two")
    told.counts(900, 0, 100)
    return told


def test_items_that_are_said_again_were_kept_and_the_others_are_new(path: Path) -> None:
    told = talk()
    told.compacts(
        message("user", "first"),
        message("assistant", "two") | {"phase": "final_answer"},
        message("developer", "rules"),
        sealed(),
    )

    reading = read_at(path, told)

    assert boundary(reading).kept == ("line:3", "line:6")
    assert boundary(reading).summary is None
    assert boundary(reading).partial == "the summary is encrypted"
    assert brought(reading) == ["rules", ""]
    assert [step.type for step in reading.of(Aside)][-1] == "compacted"


def test_the_encrypted_summary_goes_back_as_it_came(path: Path) -> None:
    told = talk()
    told.compacts(message("user", "first"), sealed())

    block = read_at(path, told).blocks[-1]

    assert isinstance(block, Block)
    assert block.kind is Kind.DEVELOPER
    assert block.native
    assert block.native.provider == "openai-responses"
    assert "gAAAA" in block.native.item


def test_each_item_is_kept_once_and_in_order(path: Path) -> None:
    told = Rollout()
    for text in ("go on", "stop", "go on"):
        told.user(text)
    told.compacts(message("user", "go on"), message("user", "go on"), message("user", "stop"))

    reading = read_at(path, told)

    assert boundary(reading).kept == ("line:2", "line:4")
    assert boundary(reading).partial == "there is no summary"
    assert brought(reading) == ["stop"]


def test_a_second_compaction_keeps_what_the_first_one_kept_or_brought(path: Path) -> None:
    told = talk()
    first = told.compacts(message("user", "first"), message("developer", "new rules"))
    told.user("third")
    told.compacts(
        message("user", "first"), message("developer", "new rules"), message("user", "second")
    )

    compactions = read_at(path, told).of(Compacted)

    assert compactions[1].kept == ("line:3", f"line:{first}:2")


def test_a_call_and_its_answer_were_both_kept_or_are_both_new(path: Path) -> None:
    told = Rollout()
    call = {"type": "function_call", "name": "ls", "arguments": "{}", "call_id": "c"}
    output = {"type": "function_call_output", "call_id": "c", "output": "a long text"}
    told.add("response_item", call | {"id": "fc_1"})
    told.add("response_item", output)
    told.compacts(call, output)
    told.user("more")
    told.compacts(call | {"arguments": '{"all":1}'}, output)

    first, second = read_at(path, told).of(Compacted)

    assert first.kept == ("line:2", "line:3")
    assert second.kept == ()


def test_an_answer_that_was_kept_shorter_is_the_same_answer(path: Path) -> None:
    told = Rollout()
    call = {"type": "function_call", "name": "ls", "arguments": "{}", "call_id": "c"}
    output = {"type": "function_call_output", "call_id": "c", "output": "a long text"}
    told.add("response_item", call | {"id": "fc_1"})
    told.add("response_item", output)
    told.compacts(call, output | {"output": "a ..."})
    told.user("more")
    told.compacts(call, output | {"output": "a ..."})

    reading = read_at(path, told)

    (first,), (second,) = reading.of(Shortened), reading.of(Compacted)
    assert second.kept == ("line:2", "line:3")
    assert first.instead == second.instead == (Instead("line:3", "a ...", "c"),)
    assert len(reading.of(Append)) == 3


def test_a_readable_summary_is_the_summary_and_no_item_of_the_context(path: Path) -> None:
    told = talk()
    told.compacts(message("user", "second"), message("user", "So far: two."), said="So far: two.")

    reading = read_at(path, told)

    assert boundary(reading).summary == "So far: two."
    assert boundary(reading).partial is None
    assert brought(reading) == []


def test_a_compaction_without_a_new_context_keeps_the_prompts(path: Path) -> None:
    told = talk()
    told.add("compacted", {"message": "So far: two."})

    reading = read_at(path, told)

    assert boundary(reading).kept == ("line:3", "line:5")
    assert boundary(reading).partial == "it does not say what it kept"


def test_the_count_after_it_says_how_much_it_left(path: Path) -> None:
    told = talk()
    told.compacts(message("user", "first"), sealed())
    told.add("world_state", {"full": True})
    told.model("gpt-a")
    told.leaves(120)
    told.event("context_compacted")

    reading = read_at(path, told)

    assert (boundary(reading).pre_tokens, boundary(reading).post_tokens) == (1_000, 120)


def test_items_may_follow_at_once_without_a_count(path: Path) -> None:
    told = talk()
    told.compacts(message("user", "first"), message("developer", "new rules"))
    told.says("three")

    reading = read_at(path, told)

    assert boundary(reading).post_tokens is None
    assert brought(reading) == ["new rules", "three"]


def test_with_nothing_before_it_a_summary_is_what_another_rollout_holds(path: Path) -> None:
    told = Rollout()
    told.compacts(message("user", "So far: two."), message("user", "go"), said="So far: two.")

    reading = read_at(path, told)

    assert reading.of(Compacted) == []
    assert reading.said == [("developer", "So far: two."), ("user", "go")]
    assert isinstance(reading.blocks[0], Block)
    assert reading.blocks[0].name == "summary"


def test_a_summary_that_cutbank_wrote_is_read_as_what_it_says(path: Path) -> None:
    said = summary_message.wrapped("two", Ranges.span(1, 6))
    told = talk()
    told.compacts(message("user", said), message("user", "second"), said=said)

    assert boundary(read_at(path, told)).summary == "two"


def test_a_users_words_are_never_a_summary(path: Path) -> None:
    told = talk()
    told.user(summary_message.wrapped("two", Ranges.span(1, 6)))

    reading = read_at(path, told)

    assert list(reading.of(Compacted)) == []
    assert reading.said[-1][0] == "user"


@pytest.mark.parametrize("before", [True, False])
def test_a_summary_in_a_users_role_is_no_users_word(path: Path, before: bool) -> None:
    told = talk() if before else Rollout()
    text = summary_message.wrapped("two", Ranges.span(1, 6))
    told.user({"type": "input_text", "text": text, **MARK})
    told.user("go on")

    reading = read_at(path, told)

    assert [step.summary for step in reading.of(Compacted)] == ["two"] * before
    last = [("user", "go on")] if before else [("developer", "two"), ("user", "go on")]
    assert reading.said[-len(last) :] == last
    assert "summary" in [step.type for step in reading.of(Aside)]


def test_a_rollback_after_a_compaction_stops_at_what_it_brought(path: Path) -> None:
    told = talk()
    line = told.compacts(message("user", "first"), message("developer", "new rules"))
    told.says("three")
    told.user("fourth")
    told.event("thread_rolled_back", num_turns=1)

    (rewind,) = read_at(path, told).of(Rewind)

    assert rewind.to == f"line:{line + 1}"
