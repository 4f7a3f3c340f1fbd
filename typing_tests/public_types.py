"""The types that users see: mypy and pyright check this file, and nothing runs it."""

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, assert_type

import cutbank
from cutbank import (
    AgentLoop,
    AppendResult,
    AsyncAgentLoop,
    AsyncSession,
    AsyncStore,
    Audit,
    AuditedCall,
    BacktestResult,
    Block,
    CompactionOptions,
    CompactionOutcome,
    ContextMeasurement,
    ExportReport,
    FileReport,
    HistoryView,
    Item,
    LoopOptions,
    Policy,
    RecalledBlock,
    Replay,
    RereadReport,
    ReserveHeadroom,
    SessionInfo,
    SessionStore,
    SourceHit,
    StoredSession,
    ToolCall,
    ToolResult,
    ViewDiff,
    ViewItem,
)

if TYPE_CHECKING:
    from anthropic import Anthropic
    from openai import OpenAI


def sessions_and_views(store: SessionStore) -> None:
    assert_type(cutbank.open("sessions.db"), SessionStore)
    session = store.session("one")
    assert_type(session, StoredSession)
    assert_type(store.sessions(), list[StoredSession])
    assert_type(session.info, SessionInfo)
    call = ToolCall(tool_call_id="c", name="ls", arguments={})
    result = ToolResult(tool_call_id="c", content="a.py")
    assert_type(session.append(Block.user("Go."), call, result), AppendResult)
    assert_type(session.view(), HistoryView)
    assert_type(session.recall(1), list[RecalledBlock])
    assert_type(session.blocks(last=20, kinds=["user"]), Iterator[RecalledBlock])
    assert_type(session.find("message 1"), AppendResult | None)
    assert_type(session.pop(), RecalledBlock | None)
    assert_type(session.fork("two"), StoredSession)
    item = Item({"role": "user", "content": "Go."}, [Block.user("Go."), result], "a framework")
    assert_type(session.append(item, keys=["message 2"]), AppendResult)
    assert_type(cutbank.list_items(session.view(), "a framework"), list[ViewItem])


async def in_an_event_loop(store: AsyncStore) -> None:
    session = await store.session("one", create=False)
    assert_type(session, AsyncSession)
    assert_type(await store.sessions(prefix="o"), list[AsyncSession])
    assert_type(await session.append(Block.user("Go."), key="message 1"), AppendResult)
    assert_type(session.blocks(last=20), AsyncIterator[RecalledBlock])
    assert_type(await session.view(at=3), HistoryView)
    assert_type(await session.fork("two", at=3), AsyncSession)
    assert_type(await session.compact("pi", limit=8_000), CompactionOutcome)
    assert_type(await session.loop(limit=8_000), AsyncAgentLoop)
    assert_type(await cutbank.run_async(cutbank.audit, session.sync), Audit)
    await session.append(Block.user("Go."), kee="a")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await session.view(at="3")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def compactions(session: StoredSession) -> None:
    options = CompactionOptions(dry_run=True)
    policy: Policy = ReserveHeadroom(keep_tokens=100)
    assert_type(session.compact(policy, limit=8_000, options=options), CompactionOutcome)
    assert_type(session.compact("pi"), CompactionOutcome)
    assert_type(session.revert(), int)
    loop = session.loop(model="claude-sonnet-4-6", options=LoopOptions(once_a_turn=True))
    assert_type(loop, AgentLoop)
    assert_type(loop.prepare(), HistoryView)


def looking_back(store: SessionStore, session: StoredSession) -> None:
    assert_type(cutbank.audit(session), Audit)
    assert_type(cutbank.audit_call(session, 1), AuditedCall)
    assert_type(cutbank.diff(session), ViewDiff)
    assert_type(cutbank.replay(session, "pi"), Replay)
    assert_type(cutbank.backtest(store, ["pi"]), BacktestResult)
    assert_type(cutbank.measure_context(session), ContextMeasurement)
    assert_type(cutbank.export(session, "openai-chat", "chat.json"), ExportReport)
    assert_type(cutbank.import_transcripts(store, "transcripts"), list[FileReport])
    assert_type(cutbank.reread(session, into="again"), RereadReport)
    assert_type(cutbank.search_sources(store, "text"), list[SourceHit])


def requests(view: HistoryView, anthropic: "Anthropic", openai: "OpenAI") -> None:
    """The clients of the providers accept what a view renders to."""
    anthropic.messages.create(**view.render("anthropic"))
    openai.chat.completions.create(**view.render("openai-chat"))
    openai.responses.create(**view.render("openai-responses"))
