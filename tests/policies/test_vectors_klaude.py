"""What klaude-code answered, field by field: as first shipped and as shipped later."""

import pytest
from klaude_cases import SYSTEMS, Case, cases
from vector_files import FOLDERS, table_of

from cutbank import ReserveHeadroom, Window, recognize_overflow
from cutbank.domain.item import group_messages
from cutbank.domain.policies.reference.klaude_code import count_klaude_tokens, list_kept_messages
from cutbank.domain.policies.reserve_headroom import Headroom

TABLES = pytest.mark.parametrize("file", ["klaude_first_tables", "klaude_tables"])


@pytest.mark.claim("S3.4", "S3.5", "S3.6", "S3.17", "S3.19", "S3.20", "S3.21", "S3.22", "S3.28")
@pytest.mark.claim("S3.29", "S3.30")
@FOLDERS
@pytest.mark.parametrize("file", SYSTEMS)
def test_vectors_are_answered(folder: str, file: str) -> None:
    """Where the original raised, nothing leaves by its own cut; the store may do better."""
    for case in cases(folder, file):
        expected = case.expected
        check_sizes(case)
        assert case.policy.fires(case.window) is expected["trigger"], case.id
        assert show_history(case, case.window) == expected["llm_history_before"], case.id
        first_kept = check_cut(case)
        assert (first_kept is None) is (expected["result"] is None), case.id
        assert (first_kept is None) is ("error" in expected), case.id
        if first_kept is not None:
            check_parts(case, first_kept)
            check_summary(case, first_kept)


def check_sizes(case: Case) -> None:
    names = ("message_block_ids", "message_roles", "message_tokens")
    rows = zip(*(case.expected[name] for name in names), strict=True)
    assert [
        (case.session.ids(message.items), message.role.value, count_klaude_tokens(message.items))
        for message in group_messages(case.whole)
    ] == [(ids, role, tokens) for ids, role, tokens in rows if role != "summary"], case.id


def check_cut(case: Case) -> int | None:
    """Compare the walk with the vector; return the first kept position."""
    expected, walk = case.expected, case.walk()
    base = case.message_at(case.window.cut_start)
    assert base == expected["base_start_index"], case.id
    if expected["result"] is not None:
        cut = base if walk.first_kept is None else case.message_at(walk.first_kept)
        assert cut == expected["cut_index"] == expected["result"]["first_kept_index"], case.id
    return walk.first_kept


def check_parts(case: Case, first_kept: int) -> None:
    material = case.material(first_kept)
    history, beginning = case.form.split_parts(material)
    kept = [item for item in case.window.open_to_cut if item.position >= first_kept]
    found = {
        "tokens_before": case.tokens_before,
        "split_task": bool(beginning),
        "task_start_index": case.message_at(beginning[0].position) if beginning else -1,
        "summarised_ids": case.session.ids(history),
        "prefix_ids": case.session.ids(beginning),
        "kept_ids": case.session.ids(kept),
        "read_files": list(material.digest.read_files),
        "modified_files": list(material.digest.modified_files),
    }
    assert found == {name: case.expected["result"][name] for name in found}, case.id


def check_summary(case: Case, first_kept: int) -> None:
    """Compare requests, the joined answers and the history that is sent afterwards.

    A request's system_len is the length of the original's own prompt: ours are in our own words.
    """
    expected, material = case.expected, case.material(first_kept)
    asked = case.form.plan_requests(material)
    calls = [
        {
            "max_tokens": request.budget,
            "conversation": case.form.render_conversation(request.items),
            "has_prev": request.previous is not None,
        }
        for request in asked
    ]
    assert calls == [
        {name: call[name] for name in ("max_tokens", "conversation", "has_prev")}
        for call in expected["result"]["llm_calls"]
    ], case.id
    texts = {request.part: f"SUM{number}" for number, request in enumerate(asked, 1)}
    summary = case.form.join_answers(texts, material)
    assert summary == expected["result"]["summary"], case.id
    after = case.session.compacted(case.window.limit, first_kept, summary)
    assert show_history(case, after) == expected["llm_history_after"], case.id
    assert case.policy.fires(after) is expected["trigger_after"], case.id


def show_history(case: Case, window: Window) -> list[list[str]]:
    """The history that is sent, as the vectors write it."""
    written = [[f"SUMMARY:{window.summary.text[:60]}"]] if window.summary else []
    for message in list_kept_messages(window):
        written.append(case.session.ids(message.items))
        if case.policy.answers_open_calls:
            waiting = [call for call in message.calls if call.is_open]
            written += [["STRIPPED_DANGLING_CALLS:tool"] for _ in waiting]
    return written


@pytest.mark.claim("S3.2", "S3.3", "S3.7", "S3.8", "S3.9", "S3.10", "S3.11")
@FOLDERS
@TABLES
def test_settings_by_the_limit_and_overflows_are_the_vectors(folder: str, file: str) -> None:
    tables = table_of(folder, file)
    for row in tables["resolve_config"]:
        headroom = ReserveHeadroom().find_headroom(row["context_limit"] or 0)
        assert headroom == Headroom(row["reserve_tokens"], row["keep_recent_tokens"]), row
        assert headroom.summary == row["max_summary_tokens"], row
    for row in tables["overflow"]:
        if row["overflow"] and "(no body)" not in row["message"].lower():
            assert recognize_overflow(row["message"]) is not None, row
