"""What the reference documents say of the request for a summary, as a provider gets to see it."""

import re
import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from loopback.answers import Answer, Refuses, Request, Says, Tokens, Waits, Why, in_turn
from loopback.asked import Asked
from loopback.conversation import MATERIAL, judge
from loopback.gates import Gate
from loopback.providers import DIALECTS, Provider
from own_form import LEAD, SPLIT, OwnForm

import cutbank
from cutbank import Block, StoredSession, ToolCall, ToolResult
from cutbank.adapters.models.cheaper_models import cheaper_than
from cutbank.adapters.models.model_catalog import facts_of
from cutbank.adapters.runtime.compaction.cancellation import Cancellation
from cutbank.adapters.runtime.compaction.outcome import Outcome
from cutbank.adapters.runtime.compaction.summary_chain import SummaryChain
from cutbank.domain.errors import CompactionCancelledError
from cutbank.domain.policies.policy import Policy
from cutbank.domain.policies.preserve_zone import PreserveZone
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom
from cutbank.domain.policies.retention_window import RetentionWindow
from cutbank.domain.ranges import Ranges
from cutbank.domain.summaries.forms.claude_sdk import SECTIONS

TUNACODE = RetentionWindow(keep_recent_tokens=500, reserve_tokens=1_000, summary_tokens=600)
CLAUDE_SDK = PreserveZone(preserve_ratio=0.1, max_output_tokens=1_000, prune_over=None)
SUMMARY = "## Goal\n- comments in the parser\n\n## Progress\n### Done\n- the parser was read"
ANSWER = Says(SUMMARY)
LIMIT = 8_000


@pytest.fixture
def provider() -> Provider:
    """What a request says is the same whoever hears it."""
    return DIALECTS[0]


def klaude(form: str) -> Policy:
    return ReserveHeadroom(reserve_tokens=2_000, keep_tokens=1_000, form=form)


def compacted(
    asked: Asked,
    session: StoredSession,
    policy: Policy,
    answer: Answer = ANSWER,
    *,
    instructions: str | None = None,
    cancellation: Cancellation | None = None,
    is_streamed: bool = True,
) -> Outcome:
    asked.server.script = in_turn(answer)
    chain = SummaryChain((asked.llm(by_form=True, is_streamed=is_streamed),), retries=0)
    return session.compact(
        policy,
        limit=LIMIT,
        chain=chain,
        instructions=instructions,
        cancellation=cancellation,
    )


def worked(
    session: StoredSession, turns: Iterable[int] = range(8), result: str = "r" * 800
) -> None:
    """Turns of a question, a call with its result, and an answer."""
    for turn in turns:
        call = f"c{turn}"
        session.append(Block.user(f"question {turn} " + "q" * 400))
        session.append(ToolCall(tool_call_id=call, name="read"))
        session.append(ToolResult(tool_call_id=call, content=result))
        session.append(Block.assistant(f"answer {turn} " + "a" * 400))


def prompt_of(request: Request) -> str:
    (message,) = request.body["messages"]
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def settings_in(folder: Path, asked: Asked, *lines: str) -> Path:
    file = folder / "cutbank.toml"
    url = asked.provider.base_url(asked.server.url)
    own = "\n".join(lines)
    file.write_text(
        f'[summary]\nchain = ["llm"]\nprompt = "policy"\nbase_url = "{url}"\n{own}\n',
        encoding="utf-8",
    )
    return file


@pytest.mark.claim("S2.10")
def test_one_request_writes_the_summary(asked: Asked, session: StoredSession) -> None:
    worked(session)

    outcome = compacted(asked, session, TUNACODE)

    assert (outcome.compacted, outcome.summariser, outcome.rejected) == (True, "llm", ())
    assert len(asked.server.requests) == 1


@pytest.mark.claim("S2.8")
@pytest.mark.parametrize(("length", "is_cut"), [(500, False), (501, True)])
def test_results_over_500_characters_are_cut_for_tunacodes_writer(
    asked: Asked, session: StoredSession, length: int, is_cut: bool
) -> None:
    worked(session, result="r" * length)

    compacted(asked, session, TUNACODE)

    (prompt,) = map(prompt_of, asked.server.requests)
    shown = "r" * 500 + ("...[truncated]" if is_cut else "")
    assert f"[Tool Result]: {shown}\n" in prompt


@pytest.mark.claim("S2.47")
def test_tunacodes_writer_is_asked_for_goal_and_progress_and_they_are_served(
    asked: Asked, session: StoredSession
) -> None:
    worked(session)

    compacted(asked, session, TUNACODE)

    (prompt,) = map(prompt_of, asked.server.requests)
    summary = session.view().summary
    assert summary
    for heading in ("## Goal", "## Progress"):
        assert heading in prompt
        assert heading in summary.text
    assert set(summary.sections) == {"Goal", "Progress"}


@pytest.mark.claim("S2.49")
def test_the_summary_before_is_handed_to_the_writer_of_the_next(
    asked: Asked, session: StoredSession
) -> None:
    worked(session)
    compacted(asked, session, TUNACODE)
    worked(session, range(8, 16))

    outcome = compacted(asked, session, TUNACODE)

    assert outcome.compacted
    first, second = map(prompt_of, asked.server.requests)
    assert "- the parser was read" not in first
    assert "- the parser was read" in second


@pytest.mark.claim("S2.11")
def test_the_agents_own_model_writes_where_the_settings_name_it(
    asked: Asked, database: str, tmp_path: Path
) -> None:
    own = asked.provider.model
    file = settings_in(tmp_path, asked, f'model = "{own}"')

    with cutbank.open(database, settings=file) as store:
        worked(session := store.session("s"))
        session.compact(TUNACODE, model=own, limit=LIMIT)

    (request,) = asked.server.requests
    assert request.model == own.partition(":")[2]


@pytest.mark.claim("S4.29", "S4.50")
def test_a_cheaper_model_writes_where_the_settings_name_none(
    asked: Asked, database: str, tmp_path: Path
) -> None:
    own = "anthropic:claude-opus-4-8"
    file = settings_in(tmp_path, asked)

    with cutbank.open(database, settings=file) as store:
        worked(session := store.session("s"))
        session.compact(CLAUDE_SDK, model=own, limit=LIMIT)

    (request,) = asked.server.requests
    ours, theirs = facts_of(f"anthropic:{request.model}"), facts_of(own)
    assert f"anthropic:{request.model}" == cheaper_than(own)
    assert ours
    assert theirs
    assert ours.prices[0].input < theirs.prices[0].input
    assert ours.prices[0].output < theirs.prices[0].output


@pytest.mark.claim("S4.30")
@pytest.mark.parametrize("is_streamed", [False, True])
def test_4096_tokens_are_granted_whole_or_in_pieces(
    asked: Asked, database: str, tmp_path: Path, is_streamed: bool
) -> None:
    """The document wants it whole, the program has it in pieces."""
    file = settings_in(tmp_path, asked, f"streamed = {str(is_streamed).lower()}")

    with cutbank.open(database, settings=file) as store:
        worked(session := store.session("s"))
        session.compact(CLAUDE_SDK, model=asked.provider.model, limit=LIMIT)

    (request,) = asked.server.requests
    assert request.body["max_tokens"] == 4_096
    assert bool(request.body.get("stream")) is is_streamed


@pytest.mark.claim("S4.31")
def test_five_things_are_to_be_preserved(asked: Asked, session: StoredSession) -> None:
    worked(session)

    compacted(asked, session, CLAUDE_SDK)

    (prompt,) = map(prompt_of, asked.server.requests)
    asked_for = prompt[prompt.rindex("Headings") :]
    listed = [line.removeprefix("## ") for line in asked_for.split("\n") if line.startswith("#")]
    assert listed == list(SECTIONS)
    assert len(listed) == 5


@pytest.mark.claim("S4.32")
def test_instructions_are_added_where_there_are_some(asked: Asked, session: StoredSession) -> None:
    worked(session)
    compacted(asked, session, CLAUDE_SDK, instructions="Mind the migrations.")
    worked(session, range(8, 16))
    compacted(asked, session, CLAUDE_SDK)

    with_some, without = map(prompt_of, asked.server.requests)
    told = with_some[with_some.rindex("</record-") :]
    assert "Additional instructions" in told
    assert "Mind the migrations." in told
    assert "Additional instructions" not in without


@pytest.mark.claim("S4.33")
@pytest.mark.parametrize(("length", "is_cut"), [(2_000, False), (2_001, True)])
def test_messages_over_2000_characters_are_cut_for_goats_writer(
    asked: Asked, session: StoredSession, length: int, is_cut: bool
) -> None:
    session.append(Block.user("m" * length))
    worked(session)

    compacted(asked, session, CLAUDE_SDK)

    (prompt,) = map(prompt_of, asked.server.requests)
    assert f"[user]: {'m' * 2_000}{'...' if is_cut else ''}\n" in prompt


@pytest.mark.claim("S2.53")
def test_whoever_gives_up_ends_the_request(asked: Asked, session: StoredSession) -> None:
    worked(session)
    cancellation = Cancellation()

    def give_up() -> None:
        asked.server.wait_for_requests(1)
        cancellation.ask()

    thread = threading.Thread(target=give_up)
    thread.start()
    with pytest.raises(CompactionCancelledError):
        compacted(
            asked, session, TUNACODE, Waits(Gate(), Says(SUMMARY), 3), cancellation=cancellation
        )
    thread.join()
    asked.server.wait_for_departures(1)

    assert session.view().boundary is None


@pytest.mark.claim("S3.20")
@pytest.mark.parametrize("form", ["document", "as-shipped", "later"])
@pytest.mark.parametrize(("steps", "requests"), [(0, 1), (6, 2)])
def test_klaudes_summary_takes_a_request_and_another_for_a_task_that_was_cut(
    asked: Asked, session: StoredSession, form: str, steps: int, requests: int
) -> None:
    worked(session)
    session.append(Block.user("The last task. " + "q" * 4_000))
    for step in range(steps):
        session.append(Block.assistant(f"step {step} " + "a" * 1_000))

    outcome = compacted(asked, session, klaude(form))

    assert (outcome.compacted, outcome.summariser, outcome.rejected) == (True, "llm", ())
    prompts = list(map(prompt_of, asked.server.requests))
    assert len(prompts) == requests
    assert sum("beginning of a turn" in prompt for prompt in prompts) == requests - 1
    assert all("[Assistant]: answer 0" in one for one in prompts if "beginning of" not in one)


@pytest.mark.claim("S3.27")
def test_klaudes_writer_is_asked_for_what_its_summaries_hold(
    asked: Asked, session: StoredSession
) -> None:
    worked(session)

    compacted(asked, session, klaude("document"))

    prompt = prompt_of(asked.server.requests[0])
    headings = re.findall(r"^#+ ([\w &]+)", prompt[prompt.rindex("Headings") :], re.MULTILINE)
    wanted = ["Goal", "Progress", "Done", "In Progress", "Blocked", "Key Decisions", "Next Steps"]
    assert [each.strip() for each in headings if each.strip() in wanted] == wanted


def test_what_the_provider_finds_too_long_is_read_in_parts_in_our_own_way(asked: Asked) -> None:
    most = 8_000

    def holds_little(request: Request) -> Answer:
        return Refuses(Why.OVERFLOW) if len(request.raw) > most else Says(SUMMARY)

    asked.server.script = holds_little
    draft = asked.draft(
        material=replace(MATERIAL, form=OwnForm(shown=20_000)), by_form=True, window=9_000
    )

    whole, *others = map(prompt_of, asked.server.requests)
    assert "[tool_result]" in whole
    assert "[tool_result]" not in "".join(others)
    assert any("part 1 of" in other for other in others)
    assert LEAD not in draft.text


def test_a_split_turn_takes_two_requests_at_the_same_time(asked: Asked) -> None:
    """Neither is answered before both are there."""
    gate = Gate()

    def answer(request: Request) -> Answer:
        is_turn = "beginning of a turn" in prompt_of(request)
        return Waits(gate, Says("### Original Request\n- go on" if is_turn else SUMMARY))

    def open_when_both_are_there() -> None:
        asked.server.wait_for_requests(2)
        gate.open()

    asked.server.script = answer
    thread = threading.Thread(target=open_when_both_are_there)
    thread.start()
    material = replace(MATERIAL, prefix=Ranges([(5, 6)]), turn_budget=300, form=OwnForm())
    draft = asked.draft(material=material, by_form=True)
    thread.join()

    assert len(asked.server.requests) == 2
    assert draft.text.endswith(f"---\n\n{SPLIT}\n\n### Original Request\n- go on")
    assert draft.usage
    assert draft.usage.output == 2 * Tokens().output
    judge(draft, material)
