"""Serves one session of a store: append to it, view it, compact it, recall what left."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Unpack, cast

from pydantic import JsonValue

from ....domain.blocks import AnyBlock, BlockKind
from ....domain.compaction import MAIN_LINEAGE
from ....domain.native_item import Item
from ....domain.policies.policy import Policy
from ....domain.ranges import Ranges
from ....domain.session import Session
from ....domain.session_events import Parent
from ....projections.history_view import HistoryView
from ...storage.event_log.storage_errors import translate_storage_errors
from .appending import AppendResult, append_blocks, append_response
from .block_groups import CallEnd, SessionBlocks, get_call_id
from .recalled_blocks import (
    RecalledBlock,
    collect_positions,
    find_newest_block,
    make_recalled,
    recall_blocks,
    select_blocks,
)
from .session_log import CallReport, SessionInfo, SessionLog, check_time_zone
from .session_records import SessionRecords

if TYPE_CHECKING:
    from ..agent_loop import AgentLoop
    from ..compaction.options import CompactionOptions, LoopOptions
    from ..compaction.outcome import CompactionOutcome


class StoredSession:
    """One session: append to it, view it, compact it, recall what left."""

    def __init__(self, log: SessionLog) -> None:
        self.log = log
        """The streams of the session, for tools that work on events."""
        self.namespace = log.namespace
        self.key = log.key

    def __repr__(self) -> str:
        return f"<session {self.key!r} in {self.log.context.name}>"

    # Writing

    def append(
        self,
        *blocks: AnyBlock | Item,
        key: str | None = None,
        keys: Sequence[str] | None = None,
        expect: int | None = None,
    ) -> AppendResult:
        """Store blocks in order, all in one transaction, durably before this returns.

        Of an `Item` and its blocks, what both hold is stored once. `key` names the append: the same
        again stores nothing and returns the first result, and ConflictError is raised if the key
        was used for something else. `keys` names each block or item, and those that were stored
        under theirs before are not stored again. `expect` is the position that the caller believes
        newest; ConflictError if it is not. Of a tool result that is larger than the settings say,
        views show both ends, and the log keeps it whole. Raises OrphanToolResultError,
        DuplicateToolCallError or SessionClosedError, and then nothing is stored.
        """
        return append_blocks(self.log, blocks, key=key, keys=keys, expect=expect)

    def append_response(
        self,
        response: object,
        *,
        view: HistoryView | None = None,
        renderer: str | None = None,
        cost_usd: float | None = None,
        latency_s: float | None = None,
        key: str | None = None,
        expect: int | None = None,
    ) -> AppendResult:
        """Store a model's response whole, and the call that it answers, in one transaction.

        `response` is what the client of anthropic, openai (chat or responses) or google-genai
        returned, or its JSON: its text, thinking with signatures, tool calls, images and usage.
        `view` is what was sent, and `renderer` the format that it was sent in, if it is not the
        one of that client; both let `audit` prove the request. `key` and `expect` are as in
        `append`. Returns where the blocks are; of an empty response, where the call is. Raises
        InvalidResponseError, and what `append` raises.
        """
        return append_response(
            self.log,
            response,
            view=view,
            renderer=renderer,
            key=key,
            expect=expect,
            cost_usd=cost_usd,
            latency_s=latency_s,
        )

    def configure(
        self,
        *,
        system_prompt: str | None = None,
        tools: list[JsonValue] | None = None,
        request_settings: Mapping[str, JsonValue] | None = None,
        title: str | None = None,
        parent: Parent | None = None,
    ) -> None:
        """Record what requests hold from here on, and what the session is called.

        `tools` are in the provider's own shape, `request_settings` all else that a request holds
        (model, max_tokens, ...), `parent` is the session that this one works for. Nothing is
        stored for what is None, or the same already.
        """
        changes: list[Callable[[Session], None]] = []
        if system_prompt is not None and system_prompt != self.view().system_prompt:
            changes.append(lambda session: session.set_system_prompt(system_prompt))
        if tools is not None and tools != self.view().tool_definitions:
            changes.append(lambda session: session.set_tools(tools))
        if request_settings is not None and request_settings != self.view().request_settings:
            changes.append(lambda session: session.set_request_settings(dict(request_settings)))
        if title is not None and title != self.info.title:
            changes.append(lambda session: session.set_title(title))
        if parent is not None and parent != self.log.parent:
            changes.append(lambda session: session.set_parent(parent))
        if changes:
            self.log.change(lambda session: [change(session) for change in changes])

    def record_call(
        self, view: HistoryView | int, *, call_id: str, **call: Unpack[CallReport]
    ) -> None:
        """Record that a model was sent `view`; its coordinate and fingerprint prove which.

        Where another program called the model, `view` is the last position that it sent, and
        nothing is proved. `usage` is what the provider reported, `renderer` the format that was
        sent. Of a `call_id` that is recorded again, the last report counts.
        """
        self.log.record_call(view, call_id, **call)

    def cancel_tool_call(self, tool_call_id: str, reason: str) -> None:
        """Close an open tool call that will get no result."""
        self.log.change(lambda session: session.cancel_tool_call(tool_call_id, reason))

    def close(self, reason: str | None = None) -> None:
        """Refuse further appends; the session can still be viewed and forked."""
        self.log.change(lambda session: session.close(reason))

    def pin(self, *positions: int | Ranges, keep: bool = True) -> Ranges:
        """Keep blocks in every view, word for word, from the next boundary on.

        With `keep=False`, let pinned blocks leave the view again. Their tool pairs and provider
        messages are pinned or released with them; returns all of these.
        """
        groups = self.log.check_positions(positions, whole=True)
        decide = Session.pin if keep else Session.unpin
        self.log.change(lambda session: decide(session, groups))
        return groups

    def hide(self, *positions: int | Ranges, replacement: str | None = None) -> None:
        """Take blocks out of the view from the next boundary on, or show `replacement` there."""
        wanted = self.log.check_positions(positions)
        self.log.change(lambda session: session.hide(wanted, replacement))

    def retract(
        self, *positions: int | Ranges, after: int | None = None, reason: str | None = None
    ) -> Ranges:
        """Take blocks back: they leave every view at once and stay in the log.

        `after` takes back every block after that position. A call takes its result along; a call
        whose result is taken back is open again. Returns the positions that were taken back.
        """
        if after is not None:
            positions = (*positions, Ranges.span(after + 1, self.position))
        wanted = collect_positions(positions)

        def decide(session: Session) -> Ranges:
            blocks = SessionBlocks(self.log.reader(), session.version)
            closed, reopened = blocks.close_retraction(wanted, session.state.open_calls)
            session.retract(closed, reopened, reason)
            return closed

        with translate_storage_errors(self.log.context.name):
            return cast(Ranges, self.log.decide(decide))

    def pop(self) -> RecalledBlock | None:
        """Take back the newest block with its whole item, and return it; None if there is no block.

        Of a call and its result, the result goes first, and the call is open again then.
        """

        def decide(session: Session) -> RecalledBlock | None:
            store, chain = self.log.events, self.log.chain()
            found = find_newest_block(store, chain, session.version)
            if found is None:
                return None
            events, positions = found
            known = {recorded.position: recorded for recorded in events}
            newest = make_recalled(events[-1], partial(store.read, chain), known)
            ends = [one.event for one in events if isinstance(one.event, CallEnd)]
            reopened = {get_call_id(end): end.call for end in ends if end.call not in positions}
            # With all that comes after it, so that the next search begins before it.
            session.retract(positions, reopened, "pop")
            return newest

        with translate_storage_errors(self.log.context.name):
            return cast("RecalledBlock | None", self.log.decide(decide))

    def clear(self) -> None:
        """Take back all blocks; what was recorded stays in the log, and past views stay as sent."""
        self.log.change(
            lambda session: session.retract(Ranges.span(1, session.version), {}, "clear")
        )

    def fork(
        self,
        key: str,
        *,
        at: int | None = None,
        lineage: str = MAIN_LINEAGE,
        source: str | None = None,
        title: str | None = None,
    ) -> "StoredSession":
        """Open a session that shares this one's history up to `at` and goes its own way after.

        Copies nothing. `lineage` is whose compactions it shares: a branch that was imported goes
        on with those that its source recorded. Raises ConflictError if the key is taken.
        """
        return StoredSession(self.log.fork(key, at=at, lineage=lineage, source=source, title=title))

    @property
    def records(self) -> SessionRecords:
        """Values by name, with their history, that are no part of the conversation."""
        return SessionRecords(self.log)

    # Reading

    @property
    def position(self) -> int:
        """The newest position."""
        return self.log.position

    @property
    def info(self) -> SessionInfo:
        """What the session is, and where it is from, as of now."""
        return self.log.info

    def view(
        self,
        *,
        lineage: str = MAIN_LINEAGE,
        at: int | None = None,
        lineage_version: int | None = None,
    ) -> HistoryView:
        """What a model is sent: the summary and the kept blocks.

        Without coordinates the newest; with them exactly what was served there. Raises
        NotFoundError for a position, lineage or version that does not exist.
        """
        with translate_storage_errors(self.log.context.name):
            self.log.check_lineage(lineage)
            return self.log.reader(lineage).read_view(at, lineage_version)

    def blocks(
        self,
        *,
        after: int = 0,
        before: int | None = None,
        last: int | None = None,
        kinds: Collection[BlockKind | str] | None = None,
        retracted: bool = False,
        newest_first: bool = False,
    ) -> Iterator[RecalledBlock]:
        """Yield the blocks that were appended, in order, whatever a view shows of them.

        Between two positions, both excluded; `last` blocks of these, still in order; only of some
        `kinds`; with `retracted` also those that were taken back. Reads page by page, and with
        `last` or `newest_first` from the end. Raises InvalidSettingError for an unknown kind.
        """
        return select_blocks(
            self.log.reader(),
            self.position,
            after=after,
            before=before,
            last=last,
            kinds=kinds,
            retracted=retracted,
            newest_first=newest_first,
        )

    def find(self, key: str) -> AppendResult | None:
        """Where the append, or the block, of that key is; None if the key was never used."""
        with translate_storage_errors(self.log.context.name):
            known = self.log.find_key(key)
        return AppendResult(known.first, known.last) if known else None

    def recall(self, *positions: int | Ranges, search: str | None = None) -> list[RecalledBlock]:
        """The original blocks at these handles, hidden, trimmed, summarized or not.

        With `search`, only those that hold the text, whatever its case. Without positions, all
        blocks that ever were are searched.
        """
        with translate_storage_errors(self.log.context.name):
            wanted = collect_positions(positions) if positions else None
            return recall_blocks(self.log.events, self.log.chain(), wanted, search)

    # Compaction

    def compact(
        self,
        policy: str | Policy | None = None,
        *,
        limit: int | None = None,
        model: str | None = None,
        options: "CompactionOptions | None" = None,
    ) -> "CompactionOutcome":
        """Compact now, if the policy finds something to take out.

        `policy` is a name or a value, `limit` the tokens that a prompt may have, `model` the
        agent's; the store's settings decide what is not given. Raises NothingToCompactError if the
        view would not become smaller, CompactionVetoedError if a hook forbids it, and
        CompactionCancelledError after `options.cancellation` was asked for.
        """
        from ..compaction.from_settings import compact  # noqa: PLC0415 - start-up time

        return compact(self.log, policy, limit=limit, model=model, options=options)

    def activate(self, *, lineage: str = MAIN_LINEAGE) -> int:
        """Serve the boundary that was prepared last; returns it."""
        with translate_storage_errors(self.log.context.name):
            return self.log.compactor(lineage).activate()

    def revert(self, *, lineage: str = MAIN_LINEAGE) -> int:
        """Undo the newest compaction; returns the boundary that was reverted."""
        with translate_storage_errors(self.log.context.name):
            return self.log.compactor(lineage).revert()

    def loop(
        self,
        policy: str | Policy | None = None,
        *,
        limit: int | None = None,
        model: str | None = None,
        options: "LoopOptions | None" = None,
    ) -> "AgentLoop":
        """Return the three calls of an agent that works in this session.

        `policy` is a name or a value, `limit` the tokens that a prompt may have, `model` the
        agent's. The store's settings decide what is not given, and what is known of the model
        decides the limit.
        """
        from ..compaction.from_settings import open_loop  # noqa: PLC0415 - start-up time

        return open_loop(self.log, policy, limit=limit, model=model, options=options)


def end_turn(session: StoredSession, outcome: str | None = None) -> None:
    """Record that the agent came to rest."""
    session.log.change(lambda aggregate: aggregate.end_turn(outcome))


def schedule_wake(session: StoredSession, at: datetime | None, reason: str | None = None) -> None:
    """Record that the agent goes on by itself at `at`; until then the session is not at rest.

    None takes back what was scheduled. Raises InvalidSettingError for a time without a time zone.
    """
    if at is not None:
        check_time_zone(at)
    session.log.change(lambda aggregate: aggregate.schedule_wake(at, reason))
