"""What klaude-code answered, field by field: as first shipped and as shipped later."""

import pytest
from klaude_cases import SYSTEMS, Case, cases
from vector_files import FOLDERS, table_of

from cutbank.domain.errors import NothingToCompactError
from cutbank.domain.messages import group_messages
from cutbank.domain.overflow import recognize_overflow
from cutbank.domain.policies.reserve_headroom import (
    Headroom,
    ReserveHeadroom,
    list_kept_messages,
)
from cutbank.domain.settlement import settle_plan
from cutbank.domain.summaries.summarizer import SummaryPart
from cutbank.domain.window import Window

FILES = pytest.mark.parametrize("file", SYSTEMS)
TABLES = pytest.mark.parametrize("file", ["klaude_first_tables", "klaude_tables"])


def texts_of(case: Case) -> dict[SummaryPart, str]:
    """What the vectors' writer answered: each request's number."""
    first_kept = case.policy.walk_back(case.window).first_kept
    assert first_kept is not None, case.id
    asked = case.form.plan_requests(case.material(first_kept))
    return {request.part: f"SUM{number}" for number, request in enumerate(asked, 1)}


def summary_of(case: Case, first_kept: int) -> str:
    return case.form.join_answers(texts_of(case), case.material(first_kept))


@FOLDERS
@FILES
def test_messages_and_their_sizes_are_the_vectors(folder: str, file: str) -> None:
    for case in cases(folder, file):
        expected = case.expected
        own = [
            (ids, role, tokens)
            for ids, role, tokens in zip(
                expected["message_block_ids"],
                expected["message_roles"],
                expected["message_tokens"],
                strict=True,
            )
            if role != "summary"
        ]
        messages = group_messages(case.whole)
        assert [
            (case.ids(message.items), message.role.value, case.count_tokens(message.items))
            for message in messages
        ] == [tuple(row) for row in own], case.id


@pytest.mark.claim("S3.4", "S3.5", "S3.6")
@FOLDERS
@FILES
def test_triggers_are_the_vectors(folder: str, file: str) -> None:
    for case in cases(folder, file):
        assert case.policy.fires(case.window) is case.expected["trigger"], case.id


@pytest.mark.claim("S3.17")
@FOLDERS
@FILES
def test_cuts_are_the_vectors(folder: str, file: str) -> None:
    for case in cases(folder, file):
        expected, window = case.expected, case.window
        walk = case.policy.walk_back(window)
        base = case.message_at(window.cut_start)
        assert base == expected["base_start_index"], case.id
        raw = base if walk.reached_position is None else case.message_at(walk.reached_position)
        assert raw == expected["raw_cut_index"], case.id
        cut = base if walk.first_kept is None else case.message_at(walk.first_kept)
        if expected["result"] is not None:
            assert cut == expected["cut_index"], case.id
            assert cut == expected["result"]["first_kept_index"], case.id


@pytest.mark.claim("S3.21", "S3.22", "S3.28", "S3.29", "S3.30")
@FOLDERS
@FILES
def test_what_is_summed_up_and_kept_is_the_vectors(folder: str, file: str) -> None:
    for case in cases(folder, file):
        result = case.expected["result"]
        first_kept = case.policy.walk_back(case.window).first_kept
        if result is None:
            assert first_kept is None or "No conversation" in case.expected["error"], case.id
            continue
        assert first_kept is not None, case.id
        material = case.material(first_kept)
        history, beginning = case.form.split_parts(material)
        kept = [item for item in case.window.open_to_cut if item.position >= first_kept]
        start = case.message_at(beginning[0].position) if beginning else -1
        assert {
            "tokens_before": case.tokens_before,
            "split_task": bool(beginning),
            "task_start_index": start,
            "summarised_ids": case.ids(history),
            "prefix_ids": case.ids(beginning),
            "kept_ids": case.ids(kept),
            "read_files": list(material.digest.read_files),
            "modified_files": list(material.digest.modified_files),
        } == {
            name: result[name]
            for name in (
                "tokens_before",
                "split_task",
                "task_start_index",
                "summarised_ids",
                "prefix_ids",
                "kept_ids",
                "read_files",
                "modified_files",
            )
        }, case.id


@FOLDERS
@FILES
def test_requests_and_summaries_are_the_vectors(folder: str, file: str) -> None:
    for case in cases(folder, file):
        result = case.expected["result"]
        if result is None:
            continue
        first_kept = case.policy.walk_back(case.window).first_kept
        assert first_kept is not None, case.id
        asked = case.form.plan_requests(case.material(first_kept))
        # system_len is the length of the original's own prompt: ours are in our own words.
        assert [
            {
                "max_tokens": request.budget,
                "conversation": case.form.render_conversation(request.items),
                "has_prev": request.previous is not None,
            }
            for request in asked
        ] == [
            {name: call[name] for name in ("max_tokens", "conversation", "has_prev")}
            for call in result["llm_calls"]
        ], case.id
        assert summary_of(case, first_kept) == result["summary"], case.id


def shown(case: Case, window: Window) -> list[list[str]]:
    """The history that is sent, as the vectors write it."""
    written = [[f"SUMMARY:{window.summary.text[:60]}"]] if window.summary else []
    for message in list_kept_messages(window):
        written.append(case.ids(message.items))
        if case.policy.answers_open_calls:
            waiting = [call for call in message.calls if call.is_open]
            written += [["STRIPPED_DANGLING_CALLS:tool"] for _ in waiting]
    return written


@FOLDERS
@FILES
def test_histories_before_and_after_are_the_vectors(folder: str, file: str) -> None:
    for case in cases(folder, file):
        expected = case.expected
        assert shown(case, case.window) == expected["llm_history_before"], case.id
        if expected["result"] is None:
            continue
        first_kept = case.policy.walk_back(case.window).first_kept
        assert first_kept is not None, case.id
        after = case.compacted(first_kept, summary_of(case, first_kept))
        assert shown(case, after) == expected["llm_history_after"], case.id
        assert case.policy.fires(after) is expected["trigger_after"], case.id


@FOLDERS
@FILES
def test_errors_of_the_vectors_are_no_silence(folder: str, file: str) -> None:
    """Where the original raised, nothing leaves by its own cut; the store may do better."""
    for case in cases(folder, file):
        first_kept = case.policy.walk_back(case.window).first_kept
        assert (first_kept is None) is (case.expected["result"] is None), case.id
        assert (first_kept is None) is ("error" in case.expected), case.id


def answered(case: Case) -> str:
    """What becomes of a plan: why nothing leaves, or how much the store had to change."""
    try:
        plan = case.policy.plan(case.window)
        assert plan is not None, case.id
        settlement = settle_plan(case.window, plan)
    except NothingToCompactError as error:
        return str(error)
    assert settlement.removed_items or settlement.trims, case.id
    return "repaired" if settlement.repairs else "as it was"


@pytest.mark.claim("S3.2", "S3.3")
@FOLDERS
@TABLES
def test_settings_by_the_limit_are_the_vectors(folder: str, file: str) -> None:
    for row in table_of(folder, file)["resolve_config"]:
        headroom = ReserveHeadroom().find_headroom(row["context_limit"] or 0)
        assert headroom == Headroom(row["reserve_tokens"], row["keep_recent_tokens"]), row
        assert headroom.summary == row["max_summary_tokens"], row


@pytest.mark.claim("S3.7", "S3.8", "S3.9", "S3.10", "S3.11")
@FOLDERS
@TABLES
def test_overflows_of_the_vectors_are_recognised_unless_they_have_no_words(
    folder: str, file: str
) -> None:
    for row in table_of(folder, file)["overflow"]:
        if row["overflow"] and "(no body)" not in row["message"].lower():
            assert recognize_overflow(row["message"]) is not None, row
