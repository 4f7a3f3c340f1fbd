"""The claims of seed 003, each through a session that is kept, compacted and served."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from dialects.klaude import (
    REASONS,
    Compacted,
    end_event,
    entry,
    start_event,
)
from klaude_cases import SYSTEMS, cases
from vector_files import FOLDERS, table_of

from cutbank import Block, StoredSession, ToolCall, ToolResult
from cutbank.adapters.runtime.compaction.cancellation import Cancellation
from cutbank.adapters.runtime.compaction.summary_chain import SummaryChain
from cutbank.adapters.runtime.sessions.session_store import SessionStore
from cutbank.domain.blocks import AnyBlock, Kind
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.errors import NothingToCompactError, SummariserFailedError
from cutbank.domain.hooks import Happening, Moment
from cutbank.domain.overflow import SETS, recognised
from cutbank.domain.policies.catalog import policy_named
from cutbank.domain.policies.policy import is_due
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom
from cutbank.domain.session_events import Parent, Usage
from cutbank.domain.settlement import settle
from cutbank.domain.summaries.forms.klaude import FORMS, LEAD, Way
from cutbank.domain.summaries.summarizer import Draft, Material, Part
from cutbank.projections.planned_compaction import Planned
from cutbank.projections.rendering.catalog import render

LIMIT = 8_000
RESERVE = 2_048
"""What the document leaves free of a limit of 8,000."""
SMALL = {"keep_tokens": 200}
TOO_LONG = {
    "type": "error",
    "error": {
        "type": "invalid_request_error",
        "message": "prompt is too long: 9100 tokens > 8000 maximum",
    },
}


@pytest.fixture
def engine() -> str:
    """What is decided and served does not depend on the database."""
    return "sqlite"


def talk(session: StoredSession, turns: int, *, size: int = 400) -> None:
    """Turns of a user and an agent, `size` characters each way."""
    for turn in range(turns):
        session.append(Block.user(f"question {turn} " + "q" * size))
        session.append(Block.assistant(f"answer {turn} " + "a" * size))


def called(session: StoredSession, name: str, output: str = "done", **arguments: Any) -> None:
    """A call of a tool and its result."""
    at = f"c{session.position}"
    session.append(ToolCall(tool_call_id=at, name=name, arguments=arguments))
    session.append(ToolResult(tool_call_id=at, content=output))


@dataclass
class Writer:
    """A summariser that writes what the document would, and keeps what it was given."""

    says: Callable[[Part], str] = lambda part: f"## Goal\n- {part}"
    asked: list[Material] = field(default_factory=list)
    requests: int = 0
    name: str = "writer"

    def summarise(self, material: Material) -> Draft:
        self.asked.append(material)
        form = material.form or FORMS[Way.DOCUMENT]
        requests = form.asked(material)
        self.requests += len(requests)
        return Draft(form.joined({one.part: self.says(one.part) for one in requests}, material))


@dataclass
class Fails:
    """A summariser that never brings anything."""

    name: str = "fails"

    def summarise(self, _: Material) -> Draft:
        raise SummariserFailedError("the model is away")


def planned(session: StoredSession, policy: str = "klaude-code", **settings: Any) -> Planned:
    """What a compaction would take out now."""
    compactor = session.compactor()
    order = session.loop(policy=policy, settings=settings, limit=LIMIT).order
    found = compactor.planner.planned(replace(order, trigger=Trigger.MANUAL))
    assert isinstance(found, Planned)
    return found


# When


@pytest.mark.claim("S3.1")
@pytest.mark.parametrize(("beyond", "is_compacted"), [(0, False), (1, True)])
def test_it_fires_above_the_limit_less_the_reserve_and_not_at_it(
    session: StoredSession, beyond: int, is_compacted: bool
) -> None:
    talk(session, 30)
    loop = session.loop(limit=LIMIT)
    loop.record_call(session.view(), usage=Usage(input=LIMIT - RESERVE + beyond))

    assert (loop.prepare().boundary is not None) is is_compacted


@pytest.mark.claim("S3.1")
def test_as_shipped_later_it_fires_at_the_threshold_less_the_answer(session: StoredSession) -> None:
    talk(session, 30)
    view = session.view()
    at = LIMIT - 500 - RESERVE

    def fires(policy: str, tokens: int) -> bool:
        loop = session.loop(policy=policy, limit=LIMIT, settings={"answer_tokens": 500})
        loop.record_call(view, usage=Usage(input=tokens))
        return is_due(loop.order.policy, session.compactor().planner.seen(loop.order).window)

    assert [fires("klaude-code@later", tokens) for tokens in (at - 1, at)] == [False, True]
    assert [fires("klaude-code", tokens) for tokens in (at, at + 1)] == [False, True]


@pytest.mark.claim("S3.2", "S3.3")
@FOLDERS
def test_reserve_and_keep_follow_from_the_limit(folder: str) -> None:
    for file in ("klaude_tables", "klaude_first_tables"):
        for row in table_of(folder, file)["resolve_config"]:
            headroom = ReserveHeadroom().headroom(row["context_limit"] or 0)
            assert headroom.reserve == row["reserve_tokens"], row
            assert headroom.keep == row["keep_recent_tokens"], row
    assert ReserveHeadroom().headroom(200_000).reserve == 16_384
    assert ReserveHeadroom().headroom(40_000).reserve == 10_000
    assert ReserveHeadroom().headroom(200_000).keep == 20_000
    assert ReserveHeadroom().headroom(40_000).keep == 14_000


@pytest.mark.claim("S3.4", "S3.5")
def test_the_newest_report_of_a_call_that_went_well_counts(session: StoredSession) -> None:
    talk(session, 4)
    loop = session.loop(limit=LIMIT)
    view = session.view()
    loop.record_call(view, usage=Usage(input=9_000))
    loop.record_call(view, usage=Usage(input=1_000), stop_reason="stop")
    loop.record_call(view, usage=Usage(input=9_500), stop_reason="aborted")
    loop.record_call(view, usage=Usage(input=9_500), stop_reason="error")

    window = session.compactor().planner.seen(loop.order).window

    assert window.usage == 1_000
    for policy in ("klaude-code", "klaude-code@as_shipped", "klaude-code@later"):
        value = policy_named(policy, {})
        assert isinstance(value, ReserveHeadroom)
        assert value.in_use(window) == 1_000, policy
        assert not value.fires(window), policy


@pytest.mark.claim("S3.4", "S3.5", "S3.6")
@FOLDERS
@pytest.mark.parametrize("file", SYSTEMS)
def test_verdicts_on_what_was_reported_and_estimated_are_the_vectors(
    folder: str, file: str
) -> None:
    for case in cases(folder, file):
        assert case.policy.fires(case.window) is case.expected["trigger"], case.id


@pytest.mark.claim("S3.6")
def test_without_a_report_four_characters_are_a_token(session: StoredSession) -> None:
    session.append(Block.user("x" * 402))
    session.append(Block.assistant("y" * 41), Block.thinking("z"))
    window = session.compactor().planner.seen(session.loop(limit=LIMIT).order).window

    assert window.usage is None
    assert [item.tokens for item in window.items] == [101, 11, 1]
    measured = policy_named("klaude-code@as_shipped", {})
    assert isinstance(measured, ReserveHeadroom)
    assert measured.in_use(window) == 101 + 11 + 1


# Overflow


OVERFLOWS = {
    "S3.7": "prompt is too long: 213462 tokens > 200000 maximum",
    "S3.8": "Your input exceeds the context window of this model",
    "S3.9": "context length exceeded",
}


@pytest.mark.claim("S3.7", "S3.8", "S3.9")
@pytest.mark.parametrize("message", OVERFLOWS.values(), ids=list(OVERFLOWS))
def test_a_refusal_for_length_is_recognised_and_compacted_for(
    session: StoredSession, message: str
) -> None:
    talk(session, 30)
    assert SETS["klaude"](message)

    view = session.loop(limit=LIMIT).overflowed({"error": {"message": message}})

    assert view.boundary is not None
    assert view.boundary.trigger is Trigger.OVERFLOW


@pytest.mark.claim("S3.10")
@pytest.mark.parametrize("status", [400, 413, 429])
def test_a_refusal_without_a_body_is_an_overflow_to_klaude_and_none_to_the_store(
    session: StoredSession, status: int
) -> None:
    """Ruling: a status alone says nothing of length; 429 is a limit on the rate of requests."""
    message = f"{status} status code (no body)"
    talk(session, 30)

    assert SETS["klaude"](message)
    assert recognised(message) is None
    with pytest.raises(RuntimeError, match="no body"):
        session.loop(limit=LIMIT).overflowed(RuntimeError(message))
    assert session.view().boundary is None


@pytest.mark.claim("S3.7", "S3.8", "S3.9", "S3.10", "S3.11")
@FOLDERS
def test_overflows_and_what_is_none_are_the_vectors(folder: str) -> None:
    for file in ("klaude_tables", "klaude_first_tables"):
        rows = table_of(folder, file)["overflow"]
        for row in rows:
            assert SETS["klaude"](row["message"]) is row["overflow"], row
        assert any(not row["overflow"] for row in rows)


@pytest.mark.claim("S3.11")
def test_another_error_is_raised_again_and_compacts_nothing(session: StoredSession) -> None:
    talk(session, 30)

    with pytest.raises(RuntimeError, match="rate limit exceeded"):
        session.loop(limit=LIMIT).overflowed(RuntimeError("rate limit exceeded"))

    assert session.view().boundary is None


# Where it is asked


@pytest.mark.claim("S3.12")
def test_the_threshold_is_looked_at_before_a_model_is_asked(
    session: StoredSession, store: SessionStore
) -> None:
    order: list[str] = []

    def heard(happening: Happening) -> None:
        if happening.moment is Moment.ACTIVATED:
            order.append("compacted")

    store.listeners.append(heard)
    talk(session, 40)
    session.append(Block.user("and now?"))

    view = session.loop(limit=LIMIT).prepare()
    order.append("asked")

    assert order == ["compacted", "asked"]
    assert view.boundary is not None


@pytest.mark.claim("S3.13")
def test_a_run_of_tools_is_compacted_though_no_user_says_anything(session: StoredSession) -> None:
    session.append(Block.user("Read all of it."))
    loop = session.loop(limit=LIMIT)
    drawn = set()
    for number in range(90):
        called(session, "read", "r" * 400, path=f"file-{number}.py")
        boundary = loop.prepare().boundary
        drawn.add(boundary.after if boundary else 0)

    assert len(drawn) > 2
    assert session.view().tokens < LIMIT - RESERVE + 200


@pytest.mark.claim("S3.14")
def test_a_sub_agents_session_is_left_to_its_parent_at_the_threshold(store: SessionStore) -> None:
    session = store.session("sub", parent=Parent(namespace="default", key="main"))
    talk(session, 40)
    loop = session.loop(limit=LIMIT)

    assert loop.prepare().boundary is None
    assert loop.overflowed(TOO_LONG).boundary is not None


@pytest.mark.claim("S3.15")
def test_an_overflow_in_a_turn_is_compacted_and_the_turn_is_tried_again(
    session: StoredSession,
) -> None:
    talk(session, 40)
    session.append(Block.user("and now?"))
    loop = session.loop(limit=200_000)
    refused = 0

    def model(blocks: int) -> dict[str, Any] | str:
        nonlocal refused
        if blocks > 60:
            refused += 1
            return TOO_LONG
        return "done"

    view = loop.prepare()
    answer = model(len(view.entries))
    if answer is TOO_LONG:
        view = loop.overflowed(answer)
        answer = model(len(view.entries))

    assert (answer, refused) == ("done", 1)
    assert view.entries[-1].text == "and now?"
    assert view.boundary is not None
    assert view.boundary.trigger is Trigger.OVERFLOW


# What it does


@pytest.mark.claim("S3.16")
def test_what_was_said_is_not_rewritten_and_one_boundary_is_added(session: StoredSession) -> None:
    talk(session, 10)
    before = session.recall(*range(1, session.position + 1))
    position = session.position

    session.compact("klaude-code", settings=SMALL, limit=LIMIT)

    assert session.position == position
    assert session.recall(*range(1, position + 1)) == before
    assert session.compactor().decisions.state().active == 3  # opened, requested, drawn


@pytest.mark.claim("S3.17")
def test_the_newest_blocks_that_reach_the_budget_are_kept(session: StoredSession) -> None:
    talk(session, 20)

    settlement = planned(session, keep_tokens=1_000).settlement
    window = planned(session, keep_tokens=1_000).window

    kept = [item.tokens for item in window.items if item.position >= settlement.first_kept]
    assert sum(kept) >= 1_000 > sum(kept[1:])


@pytest.mark.claim("S3.17", "S3.18")
@FOLDERS
@pytest.mark.parametrize("file", SYSTEMS)
def test_cuts_are_the_vectors_and_none_is_served_at_a_result(folder: str, file: str) -> None:
    for case in cases(folder, file):
        walk, expected = case.policy.walk(case.window), case.expected
        if walk.reached is not None:
            assert case.message_at(walk.reached) == expected["raw_cut_index"], case.id
        if walk.first_kept is None or not case.material(walk.first_kept).gone:
            continue
        plan = case.policy.plan(case.window)
        assert plan is not None, case.id
        first = settle(case.window, plan).first_kept
        opens = next(item for item in case.window.items if item.position == first)
        assert opens.kind is not Kind.TOOL_RESULT, case.id


@pytest.mark.claim("S3.18", "S3.32")
@pytest.mark.parametrize("policy", ["klaude-code", "klaude-code@as_shipped", "klaude-code@later"])
def test_no_view_begins_with_a_tool_result(session: StoredSession, policy: str) -> None:
    """As shipped, a developer's message may push a cut to a result: the store moves it back."""
    session.append(Block.user("u" * 400))
    for number in range(6):
        called(session, "read", "r" * 40, path=f"{number}.py")
        session.append(Block.developer("d" * 40))
        session.append(Block.assistant("a" * 40))
    for keep in range(10, 200, 7):
        settlement = planned(session, policy, keep_tokens=keep).settlement
        opens = session.recall(settlement.first_kept)[0].block
        assert opens.kind is not Kind.TOOL_RESULT, (policy, keep)
        positions = settlement.kept
        for item in planned(session, policy, keep_tokens=keep).window.items:
            if item.call is not None and item.position in positions:
                assert item.call in positions, (policy, keep)


@pytest.mark.claim("S3.18")
def test_as_shipped_the_raw_cut_may_be_a_result_and_the_store_says_what_it_moved(
    session: StoredSession,
) -> None:
    session.append(Block.user("u" * 400), Block.developer("d" * 80))
    called(session, "read", "r" * 80, path="a.py")
    session.append(Block.assistant("a" * 80))
    shipped = planned(session, "klaude-code@as_shipped", keep_tokens=62)
    own = planned(session, keep_tokens=62)

    wanted = shipped.plan.cut
    assert wanted is not None
    assert session.recall(wanted)[0].block.kind is Kind.TOOL_RESULT
    [repair] = shipped.settlement.repairs
    assert (repair.rule, repair.wanted) == ("nearest-legal-cut", wanted)
    assert not own.settlement.repairs


@pytest.mark.claim("S3.19")
@pytest.mark.parametrize("way", [Way.DOCUMENT, Way.AS_SHIPPED, Way.LATER])
def test_what_leaves_is_shown_to_the_writer_under_labels(session: StoredSession, way: Way) -> None:
    session.append(Block.user("Fix it.<system-reminder>be nice</system-reminder>"))
    session.append(Block.thinking("hm", message_id="m"), Block.assistant("Yes.", message_id="m"))
    called(session, "bash", "o" * 5_000, command="make")
    talk(session, 10)

    material = planned(session, form=way.value, keep_tokens=100).material
    assert material.form is not None
    said = material.form.said(material.gone[:5])

    asked = "Fix it.<system-reminder>be nice</system-reminder>"
    assert said == "\n\n".join(
        [
            f"[User]: {asked if way is Way.AS_SHIPPED else 'Fix it.'}",
            "[Assistant thinking]: hm",
            "[Assistant]: Yes.",
            '[Assistant tool calls]: bash({"command": "make"})',
            f"[Tool result]: {'o' * 4_000}...(truncated)",
        ]
    )


@pytest.mark.claim("S3.20")
def test_a_writer_is_asked_once_and_twice_where_a_task_is_cut(session: StoredSession) -> None:
    talk(session, 10)
    whole, split = Writer(), Writer()
    ask = {"form": "document"}

    session.compact(settings={**ask, "keep_tokens": 110}, limit=LIMIT, summariser=whole)
    session.append(Block.user("Read all of it. " + "q" * 400))
    for number in range(10):
        called(session, "read", "r" * 400, path=f"{number}.py")
    session.compact(settings={**ask, "keep_tokens": 300}, limit=LIMIT, summariser=split)

    assert (whole.requests, split.requests) == (1, 2)
    view = session.view()
    assert view.summary is not None
    assert "**Task Context (current task):**" in view.summary.text


@pytest.mark.claim("S3.21", "S3.28", "S3.30")
def test_files_come_from_calls_and_from_the_programs_own_tracker(session: StoredSession) -> None:
    called(session, "read", path="read.py")
    called(session, "read", path="both.py")
    called(session, "edit", path="both.py", old="a", new="b")
    called(session, "write", path="new.py", content="x")
    talk(session, 10)
    loop = session.loop(
        policy="klaude-code@later",
        settings={"keep_tokens": 200, "reserve_tokens": 7_000, "answer_tokens": 0},
        limit=LIMIT,
        tracked_files=lambda: ["tracked.py", "new.py"],
        summarisers=[Writer()],
    )

    view = loop.prepare()

    assert view.summary is not None
    assert view.summary.digest.read_files == ("read.py", "tracked.py")
    assert view.summary.digest.modified_files == ("both.py", "new.py")
    assert view.summary.text.endswith(
        "<read-files>\nread.py\ntracked.py\n</read-files>\n\n"
        "<modified-files>\nboth.py\nnew.py\n</modified-files>"
    )


@pytest.mark.claim("S3.21", "S3.28", "S3.29", "S3.30")
@FOLDERS
@pytest.mark.parametrize("file", SYSTEMS)
def test_lists_of_files_are_the_vectors_disjoint_and_cumulative(folder: str, file: str) -> None:
    for case in cases(folder, file):
        result = case.expected["result"]
        first_kept = case.policy.walk(case.window).first_kept
        if result is None or first_kept is None:
            continue
        digest = case.material(first_kept).digest
        assert list(digest.read_files) == result["read_files"], case.id
        assert list(digest.modified_files) == result["modified_files"], case.id
        assert not set(digest.read_files) & set(digest.modified_files), case.id
        if case.window.summary:
            earlier = case.window.summary.digest
            assert set(earlier.modified_files) <= set(digest.modified_files), case.id


def test_what_a_call_does_to_files_differs_between_first_and_later() -> None:
    calls = [
        ToolCall(tool_call_id="c", name="grep", arguments={"path": "a.py"}),
        ToolCall(tool_call_id="c", name="mine", arguments={"file_path": "b.py", "edits": []}),
        ToolCall(tool_call_id="c", name="write", arguments={"path": "c.py"}),
        ToolCall(tool_call_id="c", name="edit", arguments="not json"),
        ToolCall(
            tool_call_id="c",
            name="apply_patch",
            arguments={"path": "d.py", "patch": "*** Begin Patch\n"},
        ),
    ]

    def touches(way: Way) -> list[tuple[tuple[str, ...], bool]]:
        return [tuple(FORMS[way].touches(call)) for call in calls]  # type: ignore[misc]

    nothing: tuple[str, ...] = ()
    assert touches(Way.AS_SHIPPED) == [
        (nothing, False),
        (nothing, False),
        (("c.py",), True),
        (nothing, True),
        (("d.py",), True),
    ]
    assert touches(Way.LATER) == [
        (("a.py",), False),
        (("b.py",), True),
        (("c.py",), False),
        (nothing, False),
        (("d.py",), True),
    ]


@pytest.mark.claim("S3.22")
def test_an_entry_holds_summary_first_index_and_tokens_before(session: StoredSession) -> None:
    talk(session, 10)
    called(session, "bash", command="make")
    done = session.compact("klaude-code", settings=SMALL, limit=LIMIT)
    summary, boundary = session.view().summary, session.view().boundary
    assert summary is not None
    assert boundary is not None
    window = planned_window(session)
    compacted = Compacted(
        trigger=boundary.trigger,
        summary=summary.text,
        first_kept_index=boundary.first_kept - 1,
        tokens_before=boundary.pre_tokens,
        digest=summary.digest,
        history=window,
        first_kept=boundary.first_kept,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )

    written = json.loads(json.dumps(entry(compacted)))

    assert written["summary"] == summary.text
    assert written["first_kept_index"] == boundary.first_kept - 1
    assert written["tokens_before"] == boundary.pre_tokens == done.pre_tokens
    assert written["details"] == {"read_files": [], "modified_files": []}
    assert written["kept_items_brief"][-1] == {"item_type": "bash", "count": 1, "preview": ""}
    assert written["kept_items_brief"][0]["preview"].startswith(("question", "answer"))
    end = end_event(boundary.trigger, compacted)
    assert {name: end[name] for name in ("reason", "aborted", "kept_from_index")} == {
        "reason": "manual",
        "aborted": False,
        "kept_from_index": boundary.first_kept - 1,
    }


def planned_window(session: StoredSession) -> list[Any]:
    return list(session.compactor().planner.seen(session.loop(limit=LIMIT).order).window.items)


@pytest.mark.claim("S3.23", "S3.24", "S3.25")
@pytest.mark.parametrize("spoken", ["anthropic", "openai-chat"])
def test_a_view_is_the_last_summary_as_a_users_message_and_what_was_kept(
    session: StoredSession, spoken: str
) -> None:
    talk(session, 10)
    before = session.view()
    assert before.summary is None
    assert len(before.entries) == 20

    for says in ("first", "second"):
        talk(session, 5)
        writer = Writer(says=lambda _, says=says: f"the {says} summary")  # type: ignore[misc]
        session.compact(settings={**SMALL, "form": "document"}, limit=LIMIT, summariser=writer)
    view = session.view()

    assert view.boundary is not None
    assert view.summary is not None
    assert [entry.position for entry in view.entries] == list(
        range(view.boundary.first_kept, session.position + 1)
    )
    messages = render(view, spoken)["messages"]
    assert isinstance(messages, list)
    users = [message for message in messages if message["role"] == "user"]
    first = json.dumps(users[0])
    assert messages[0] == users[0]
    assert "the second summary" in first
    assert "the first summary" not in json.dumps(messages)


@pytest.mark.claim("S3.26")
@pytest.mark.parametrize("way", [None, *Way])
@pytest.mark.parametrize("keep", [210, 110])
def test_a_summary_says_that_it_is_one(session: StoredSession, way: Way | None, keep: int) -> None:
    """Ruling: whoever wrote it, the view marks it; what is joined by the form says it as well."""
    talk(session, 10)
    session.compact(
        settings={"keep_tokens": keep, "form": way or Way.DOCUMENT.value},
        limit=LIMIT,
        summariser=Writer() if way else None,
    )
    view = session.view()

    assert view.summary is not None
    is_split = view.boundary is not None and view.boundary.split_turn is not None
    assert is_split is (keep == 210)
    is_framed = way is Way.DOCUMENT or (way is not None and is_split)
    assert view.summary.text.startswith(LEAD) is is_framed
    assert "A summary of what came before" in json.dumps(render(view, "anthropic"))


@pytest.mark.claim("S3.27")
def test_goal_progress_decisions_and_next_steps_are_asked_for_and_written(
    session: StoredSession,
) -> None:
    wanted = ("Goal", "Progress", "Key Decisions", "Next Steps")
    for form in FORMS.values():
        assert [name for name in wanted if any(s.startswith(name) for s in form.sections)] == [
            *wanted
        ]
        assert "Progress: Done" in form.sections
        assert "Progress: In Progress" in form.sections
        assert "Progress: Blocked" in form.sections
    session.append(Block.user("Build the parser, and never touch the migrations folder."))
    for number in range(8):
        called(session, "edit", path=f"src/parser{number}.py", old="a" * 200, new="b" * 200)
    session.append(Block.assistant("I decided to use a recursive descent, because it is simple."))
    session.append(Block.assistant("Next I will write the tests of the parser."))
    talk(session, 10)

    session.compact("klaude-code", settings=SMALL, limit=LIMIT)

    summary = session.view().summary
    assert summary is not None
    assert {"Goal", "Progress"} <= set(summary.sections)


@pytest.mark.claim("S3.29")
def test_files_add_up_over_compactions(session: StoredSession) -> None:
    for name in ("first", "second"):
        called(session, "read", path=f"{name}-read.py")
        called(session, "write", path=f"{name}-new.py", content="x")
        talk(session, 10)
        session.compact("klaude-code", settings=SMALL, limit=LIMIT)

    summary = session.view().summary

    assert summary is not None
    assert summary.digest.read_files == ("first-read.py", "second-read.py")
    assert summary.digest.modified_files == ("first-new.py", "second-new.py")
    assert summary.text.count("first-new.py") >= 1


@pytest.mark.claim("S3.31")
@pytest.mark.parametrize("blocks", [[], [Block.user("hello")], [Block.user("a"), Block.user("b")]])
def test_a_session_that_is_too_small_is_refused_by_name(
    session: StoredSession, blocks: list[AnyBlock]
) -> None:
    if blocks:
        session.append(*blocks)
    else:
        session.set_system_prompt("You help.")

    with pytest.raises(NothingToCompactError, match=r"nothing to compact \(session too small\)"):
        session.compact("klaude-code", limit=LIMIT)


@pytest.mark.claim("S3.33")
def test_a_failure_at_the_threshold_does_not_stop_the_agent(
    session: StoredSession, store: SessionStore
) -> None:
    told: list[Happening] = []
    store.listeners.append(told.append)
    talk(session, 40)
    session.append(Block.user("and now?"))

    view = session.loop(limit=LIMIT, summarisers=[Fails()]).prepare()

    assert view.entries[-1].text == "and now?"
    assert any(one.moment is Moment.REJECTED and one.summariser == "fails" for one in told)
    assert view.summary is not None
    assert view.summary.summariser == "extractive"


@pytest.mark.claim("S3.33")
def test_what_cannot_be_compacted_is_served_as_it_is(session: StoredSession) -> None:
    session.pin(session.append(Block.user("x" * 26_000)).last)
    session.append(Block.user("and now?"))

    view = session.loop(limit=LIMIT).prepare()

    assert view.boundary is None
    assert [len(entry.text) for entry in view.entries] == [26_000, 8]
    assert end_event(Trigger.THRESHOLD, None)["aborted"] is True


@pytest.mark.claim("S3.34")
def test_reasons_are_threshold_overflow_and_manual(session: StoredSession) -> None:
    told = {start_event(trigger)["reason"] for trigger in Trigger}
    assert (
        told == {"threshold", "overflow", "manual"} == {reason.value for reason in REASONS.values()}
    )
    triggers: list[Trigger] = []
    talk(session, 40)
    loop = session.loop(limit=LIMIT)
    for compacts in (
        loop.prepare,
        lambda: loop.overflowed(TOO_LONG),
        lambda: session.compact("klaude-code", settings=SMALL, limit=LIMIT),
    ):
        compacts()
        boundary = session.view().boundary
        assert boundary is not None
        triggers.append(boundary.trigger)
        talk(session, 20)

    assert triggers == [Trigger.THRESHOLD, Trigger.OVERFLOW, Trigger.MANUAL]


class Pauses(Cancellation):
    """Waits no time, and remembers how long it should have."""

    def __init__(self) -> None:
        super().__init__()
        self.waited: list[float] = []

    def pause(self, seconds: float) -> None:
        self.waited.append(seconds)


def test_ten_retries_wait_twice_as_long_each_time_up_to_half_a_minute(
    session: StoredSession,
) -> None:
    talk(session, 10)
    material = planned(session, keep_tokens=200).material

    class Busy(Fails):
        def summarise(self, _: Material) -> Draft:
            raise SummariserFailedError("overloaded", is_transient=True)

    chain = SummaryChain((Busy(),), time_limit_s=600, retries=10, backoff_s=1)
    pauses = Pauses()
    written = chain.written(material, lambda _: None, pauses)

    assert pauses.waited == [1, 2, 4, 8, 16, 30, 30, 30, 30, 30]
    assert written.summariser == "extractive"
