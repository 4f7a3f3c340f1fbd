"""One session of a store: append to it, view it, compact it, recall what left."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from pydantic import JsonValue

from ....domain.blocks import AnyBlock
from ....domain.compaction import MAIN, RECORDED, check_nameable
from ....domain.compaction_events import Trigger
from ....domain.context_limit import NOTHING_LOGGED, ContextLimit, LoggedContext
from ....domain.counting.sizes import Sizes
from ....domain.errors import (
    ExportError,
    InvalidPositionError,
    InvalidSettingError,
    NotFoundError,
)
from ....domain.event import Event
from ....domain.pins import PinRules
from ....domain.policies.policy import Policy
from ....domain.ranges import Ranges
from ....domain.session import Session, SessionState, session_id
from ....domain.session_events import (
    Fork,
    Parent,
    ParentNamed,
    SessionOpened,
    SessionTitled,
    Usage,
)
from ....domain.summaries.summariser import Summariser
from ....projections.history_view import HistoryView
from ...settings.policy_catalog import policy_named
from ...storage.event_log.plain_errors import speaking_plainly
from ...storage.event_log.recorder import AppendKey
from ...storage.view_reader import ViewReader
from .deciding import decided
from .forking import fork
from .large_results import shown_of, tell_of
from .naming import check_name, positions_of
from .recall import Recalled, recall
from .retraction import closed_retraction
from .whole_groups import check_blocks, whole_groups

if TYPE_CHECKING:
    from ....domain.terms import Terms
    from ....projections.diffing.view_diff import ViewDiff
    from ....projections.lineage_tree import LineageTree
    from ...analysis.auditing.audit import Audit
    from ...analysis.auditing.audited_call import AuditedCall
    from ...analysis.auditing.call_index import CallIndex
    from ...analysis.auditing.places import Place
    from ...analysis.replaying.result import Replay
    from ...analysis.replaying.shadow import Shadow
    from ...transcripts.reports import ExportReport
    from ..agent_loop import AgentLoop, Habits
    from ..async_agent_loop import AsyncAgentLoop
    from ..compaction.cancellation import Cancellation
    from ..compaction.compactor import Compactor
    from ..compaction.outcome import Outcome
    from ..compaction.summary_chain import SummaryChain
    from .session_store import SessionStore
    from .status_meter import Reading

T = TypeVar("T")


class Appended(NamedTuple):
    """Where an append stands: the positions of its first and last block."""

    first: int
    last: int
    repeated: bool = False
    """The key was used before: nothing was stored, and this is what was stored then."""


class StoredSession:
    """One session: append to it, view it, compact it, recall what left."""

    def __init__(self, store: "SessionStore", namespace: str, key: str) -> None:
        self.store = store
        self.namespace = namespace
        self.key = key
        self.id = session_id(namespace, key)
        self._events = store.events
        self._readers: dict[str, ViewReader] = {}

    def __repr__(self) -> str:
        return f"<session {self.key!r} in {self.store.name}>"

    # Writing

    def append(
        self, *blocks: AnyBlock, key: str | None = None, expect: int | None = None
    ) -> Appended:
        """Store blocks in order, all in one transaction, durably before this returns.

        `key` names the append: the same key again stores nothing and returns the first result.
        `expect` is the position that the caller believes newest; ConflictError if it is not.
        Without it an append never conflicts. Of a tool result that is larger than the settings say,
        views show both ends, and the log keeps it whole. Raises OrphanToolResultError,
        DuplicateToolCallError or SessionClosedError, and then nothing is stored.
        """
        if not blocks:
            raise InvalidPositionError("nothing to append: give at least one block")

        shown = shown_of(blocks, lambda: self.store.settings)
        shortened: list[int] = []

        def decide(session: Session) -> tuple[int, int]:
            positions = list(map(session.append, blocks, shown))
            shortened[:] = [at for at, ends in zip(positions, shown, strict=True) if ends]
            return positions[0], positions[-1]

        with speaking_plainly(self.store.name):
            done = self._decide(decide, key=key, expect=expect)
            if isinstance(done, AppendKey):
                return Appended(done.first, done.last, repeated=True)
            if shortened:
                tell_of(self, Ranges.of(shortened))
        return Appended(*done)

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
    ) -> Appended:
        """Store a model's response whole, and the call that it answers, in one transaction.

        `response` is what the client of anthropic, openai (chat or responses) or google-genai
        returned, or its JSON: its text, thinking with signatures, tool calls, images and usage.
        `view` is what was sent, and `renderer` the format that it was sent in, if it is not the
        one of that client; both let `audit` prove the request. `key` and `expect` are as in
        `append`. Returns where the blocks are; of an empty response, where the call is. Raises
        InvalidResponseError, and what `append` raises.
        """
        from ....projections.rendering.catalog import RENDERERS  # noqa: PLC0415 - start-up time
        from .responses import read_response  # noqa: PLC0415 - start-up time

        read = read_response(response)
        known = RENDERERS.get(renderer or read.renderer)
        at = (view or self.view()).coordinate
        call: dict[str, Any] = {
            "call_id": read.id,
            "model": read.model,
            "usage": read.usage,
            "cost_usd": cost_usd,
            "latency_s": latency_s,
            "stop_reason": read.stop_reason,
            "position": at.position,
            "lineage": at.lineage,
            "lineage_version": at.lineage_version,
            "renderer": (known.label if known else renderer) if view else None,
            "fingerprint": view.fingerprint if view else None,
        }

        def decide(session: Session) -> tuple[int, int]:
            positions = [session.append(block) for block in read.blocks]
            session.record_call(call)
            positions = positions or [session.version]
            return positions[0], positions[-1]

        with speaking_plainly(self.store.name):
            done = self._decide(decide, key=key, expect=expect)
        if isinstance(done, AppendKey):
            return Appended(done.first, done.last, repeated=True)
        return Appended(*done)

    def set_system_prompt(self, text: str) -> None:
        """The system prompt from here on; nothing is stored where it is that already."""
        if self.view().system_prompt != text:
            self._change(lambda session: session.set_system_prompt(text))

    def set_tools(self, tools: list[JsonValue]) -> None:
        """The tools from here on, in the provider's own shape; as above where they are the same."""
        if self.view().tool_definitions != tools:
            self._change(lambda session: session.set_tools(tools))

    def set_request_settings(self, **settings: JsonValue) -> None:
        """What else a request holds from here on (model, max_tokens, ...); as above."""
        if self.view().request_settings != settings:
            self._change(lambda session: session.set_request_settings(settings))

    def retitle(self, title: str) -> None:
        """What the session is called from here on."""
        self._change(lambda session: session.retitle(title))

    def name_parent(self, parent: Parent) -> None:
        """Whom the session works for, where that was not known when it was opened."""
        self._change(lambda session: session.name_parent(parent))

    def abandon(self, tool_call_id: str, reason: str) -> None:
        """Close an open tool call that nobody will answer."""
        self._change(lambda session: session.abandon(tool_call_id, reason))

    def schedule_wake(self, at: datetime | None, reason: str | None = None) -> None:
        """The agent will go on by itself at `at`: until then the session is not at rest.

        None takes back what was scheduled.
        """
        if at is not None and at.tzinfo is None:
            raise InvalidSettingError(f"{at.isoformat()} says no zone: 09:00 is when, in UTC?")
        self._change(lambda session: session.schedule_wake(at, reason))

    def end_turn(self, outcome: str | None = None) -> None:
        """The agent came to rest."""
        self._change(lambda session: session.end_turn(outcome))

    def close(self, reason: str | None = None) -> None:
        """Refuse further appends; the session can still be viewed and forked."""
        self._change(lambda session: session.close(reason))

    def record_call(
        self,
        view: HistoryView,
        *,
        call_id: str,
        renderer: str = "neutral/1",
        model: str | None = None,
        usage: Usage | None = None,
        cost_usd: float | None = None,
        latency_s: float | None = None,
        stop_reason: str | None = None,
    ) -> None:
        """Record that a model was sent `view`: its coordinate and fingerprint prove which."""
        at = view.coordinate
        fields: dict[str, Any] = {
            "call_id": call_id,
            "model": model,
            "usage": usage,
            "cost_usd": cost_usd,
            "latency_s": latency_s,
            "stop_reason": stop_reason,
            "position": at.position,
            "lineage": at.lineage,
            "lineage_version": at.lineage_version,
            "renderer": renderer,
            "fingerprint": view.fingerprint,
        }
        self._change(lambda session: session.record_call(fields))

    def record_overflow(
        self,
        message: str,
        *,
        model: str | None = None,
        lineage: str = MAIN,
        lineage_version: int = 0,
    ) -> None:
        """Record that a provider refused a view as too long."""
        overflow = {
            "message": message,
            "model": model,
            "lineage": lineage,
            "lineage_version": lineage_version,
        }
        self._change(lambda session: session.record_overflow(overflow))

    def pin(self, *positions: int | Ranges) -> Ranges:
        """Keep blocks in every view, word for word, from the next boundary on.

        Their tool pairs and provider messages are pinned with them; returns all of these.
        """
        groups = self._groups(positions)
        self._change(lambda session: session.pin(groups))
        return groups

    def unpin(self, *positions: int | Ranges) -> Ranges:
        """Let pinned blocks leave the view again, from the next boundary on; returns them."""
        groups = self._groups(positions)
        self._change(lambda session: session.unpin(groups))
        return groups

    def hide(self, *positions: int | Ranges, replacement: str | None = None) -> None:
        """Take blocks out of the view from the next boundary on, or show `replacement` there."""
        wanted = self._checked(positions)
        self._change(lambda session: session.hide(wanted, replacement))

    def retract(self, *positions: int | Ranges, reason: str | None = None) -> Ranges:
        """Take blocks back: they leave every view at once and stay in the log.

        A call takes its result along; a call whose result is taken back is open again. Returns
        the positions that were taken back.
        """
        wanted = positions_of(positions)

        def decide(session: Session) -> Ranges:
            chain = self._events.session_chain(self.namespace, self.key)
            gone = self._reader(MAIN).retracted(session.version)
            closed = closed_retraction(
                self._events,
                chain,
                wanted,
                retracted=gone,
                head=session.version,
                open_calls=session.state.open_calls,
            )
            session.retract(closed.positions, closed.reopened, reason)
            return closed.positions

        with speaking_plainly(self.store.name):
            return cast(Ranges, self._decide(decide))

    def rewind(self, to: int, *, reason: str | None = None) -> Ranges:
        """Take back every block after position `to`."""
        return self.retract(Ranges.span(to + 1, self.position), reason=reason)

    def fork(
        self,
        key: str,
        *,
        at: int | None = None,
        lineage: str = MAIN,
        source: str | None = None,
        title: str | None = None,
    ) -> "StoredSession":
        """Open a session that shares this one's history up to `at` and goes its own way after.

        Copies nothing. `lineage` is whose compactions it shares: a branch that was imported goes
        on with those that its source recorded. Raises ConflictError if the key is taken.
        """
        check_name("session key", key)
        with speaking_plainly(self.store.name):
            fork(self._events, self._reader(lineage), key, at=at, source=source, title=title)
        return StoredSession(self.store, self.namespace, key)

    # Reading

    @property
    def position(self) -> int:
        """The newest position."""
        with speaking_plainly(self.store.name):
            chain = self._events.session_chain(self.namespace, self.key)
            return self._events.head(chain)[0]

    @property
    def title(self) -> str | None:
        """What the session is called, where it was ever said."""
        titled = self.state.titled
        if titled:
            return cast(SessionTitled, self._single(titled)).title
        return self._opened().title

    @property
    def parent(self) -> Parent | None:
        """The session, and the call in it, that this one works for."""
        parented = self.state.parented
        if parented:
            return cast(ParentNamed, self._single(parented)).parent
        return self._opened().parent

    @property
    def source(self) -> str | None:
        """The format that the session was imported from."""
        return self._opened().source

    @property
    def project(self) -> str | None:
        """The folder that its agent worked in, or a name; None where nobody said."""
        return self._opened().project

    @property
    def incomplete_import(self) -> str | None:
        """The transcript whose import into this session was interrupted: import it again."""
        with speaking_plainly(self.store.name):
            return self._events.recorder.select_incomplete_import(self.namespace, self.key)

    @property
    def forked_from(self) -> Fork | None:
        """Where the session left its parent, if it is a fork."""
        return self._opened().fork

    @property
    def state(self) -> SessionState:
        """Turn, open calls, sizes: as of now."""
        with speaking_plainly(self.store.name):
            chain = self._events.session_chain(self.namespace, self.key)
            return self._events.head(chain)[1]

    @property
    def lineages(self) -> list[str]:
        """The lineages that were written to, by name."""
        with speaking_plainly(self.store.name):
            return self._events.lineages(self.namespace, self.key)

    def view(
        self,
        *,
        lineage: str = MAIN,
        at: int | None = None,
        lineage_version: int | None = None,
    ) -> HistoryView:
        """What a model is sent: the summary and the kept blocks.

        Without coordinates the newest; with them exactly what was served there. Raises
        NotFoundError for a position, lineage or version that does not exist.
        """
        with speaking_plainly(self.store.name):
            self.check_lineage(lineage)
            return self._reader(lineage).view(at, lineage_version)

    def recall(self, *positions: int | Ranges, search: str | None = None) -> list[Recalled]:
        """The original blocks at these handles, hidden, trimmed, summarised or not.

        With `search`, only those that hold the text, whatever its case. Without positions, all
        blocks that ever were are searched.
        """
        with speaking_plainly(self.store.name):
            chain = self._events.session_chain(self.namespace, self.key)
            wanted = positions_of(positions) if positions else None
            return recall(self._events, chain, wanted, search)

    def diff(
        self,
        boundary: int | None = None,
        *,
        lineage: str = MAIN,
        before: "str | Place | None" = None,
        after: "str | Place | None" = None,
    ) -> "ViewDiff":
        """What left the view at a boundary, what stands for it, and which facts are told no more.

        None is the newest boundary of `lineage`; one that was never served is compared as if it
        had been. With `before` or `after` any two views, written `LINEAGE@VERSION#POSITION`, each
        part of which may be left out: without `before` all of the log, without `after` the newest
        view. Tokens are estimates. Raises NotFoundError, InvalidPositionError.
        """
        from ...analysis.auditing.diffs import diff  # noqa: PLC0415 - whoever never audits pays nothing

        with speaking_plainly(self.store.name):
            return diff(self, boundary, lineage, before, after)

    def lineage_tree(self, lineage: str = MAIN) -> "LineageTree":
        """Which summary stands for what, through repeated compaction: all boundaries of a lineage.

        Numbers of calls are those of the recorded model, from 1 on; tokens are estimates. Raises
        NotFoundError where no compaction was ever made on it.
        """
        from ...analysis.auditing.lineages import trees_of  # noqa: PLC0415 - as above

        with speaking_plainly(self.store.name):
            self.check_lineage(lineage)
            return trees_of(self, [lineage])[0]

    def audit(
        self,
        *,
        lineage: str = MAIN,
        at: int | None = None,
        lineage_version: int | None = None,
    ) -> "Audit":
        """Everything that happened up to a coordinate, from before any compaction, in order.

        `between()` of the answer yields it page by page: blocks with what became of them, calls
        with what they were sent and whether that is proved, decisions, and every other event.
        Sizes are estimated tokens. Raises NotFoundError for a position, lineage or version that
        does not exist.
        """
        from ...analysis.auditing.audit import Audit  # noqa: PLC0415 - as above

        with speaking_plainly(self.store.name):
            self.check_lineage(lineage)
            return Audit(self, lineage, at, lineage_version)

    def audited_call(self, number: int | None = None, *, at: int | None = None) -> "AuditedCall":
        """What one call of a model was sent: rebuilt, and proved by its fingerprint.

        `number` is the call's, from 1 on, as `audit` and replays count; `at` the position of its
        record, or of a block that it answered. `shown.proof` says whether the view is what was
        sent, `request()` gives the body. Calls are counted when the first of them is asked for.
        Raises NotFoundError where there is no such call, InvalidPositionError where `at` names
        none.
        """
        # as above
        from ...analysis.auditing.audited_call import call_by_handle, call_by_number  # noqa: PLC0415

        with speaking_plainly(self.store.name):
            if at is not None:
                return call_by_handle(self, at)
            if number is None:
                raise InvalidPositionError("which call? Give its number, or a handle with `at`")
            return call_by_number(self, number)

    @cached_property
    def call_index(self) -> "CallIndex":
        """The numbers of the session's calls; counted once, and then only what is new."""
        from ...analysis.auditing.call_index import CallIndex  # noqa: PLC0415 - as above

        return CallIndex(self)

    def export(
        self, to: str, path: "str | Path", *, view: bool = False, lineage: str = MAIN
    ) -> "ExportReport":
        """Write the session in the format `to` into a new file, or a new folder of the format's.

        With `view` what a model would be sent now, else all of the log. The report says what the
        format cannot hold. `cutbank-archive` is this session as it is stored, for another database.
        Raises ExportError where nothing can be written, and nothing is.
        """
        # Whoever never exports pays nothing for all formats.
        from ..archive.writer import NAME, write_archive  # noqa: PLC0415
        from ..exporting.exporter import export  # noqa: PLC0415

        if to == NAME:
            if view:
                raise ExportError("an archive holds all of a session: leave out view=True")
            return write_archive([self], Path(path))

        return export(self, to, Path(path), view=view, lineage=lineage)

    # Compaction

    def loop(
        self,
        *,
        policy: str | Policy | None = None,
        settings: Mapping[str, Any] | None = None,
        limit: int | None = None,
        model: str | None = None,
        summarisers: Sequence[Summariser] | None = None,
        pins: PinRules | None = None,
        instructions: str | None = None,
        tracked_files: Callable[[], Iterable[str]] | None = None,
        lineage: str = MAIN,
        habits: "Habits | None" = None,
        shadows: Sequence[str | Policy] | None = None,
    ) -> "AgentLoop":
        """The three calls of an agent that works in this session.

        `policy` is a name or a value, `settings` its fields; `limit` the tokens that a prompt may
        have, `model` the agent's, `summarisers` who writes summaries, in order; `tracked_files`
        says which files the agent's program knows to have been read. `shadows` are policies that
        decide beside this one, each on its lineage `shadow:NAME`, and are never served. What is not
        said is as the store's settings have it, and the limit what is known of the model.
        """
        from ..agent_loop import AgentLoop  # noqa: PLC0415 - as above
        from ..compaction import by_settings  # noqa: PLC0415

        store = self.store.settings
        order = by_settings.order_by(
            store,
            model,
            self._logged_context(lineage, limit),
            policy=self._policy(policy, settings),
            limit=limit,
            chain=by_settings.chain_by(store, model, tuple(summarisers))
            if summarisers is not None
            else None,
            pins=pins,
            instructions=instructions,
            tracked_files=tracked_files,
        )
        habits = habits or by_settings.habits_by(store)
        beside = store.shadow.policies if shadows is None else shadows
        if shadows and lineage != MAIN:
            raise InvalidSettingError(f"shadows are run beside {MAIN}, not beside {lineage}")
        return AgentLoop(
            self,
            order,
            model=model,
            lineage=lineage,
            habits=habits,
            shadows=self._shadows(beside, order, habits) if lineage == MAIN and beside else (),
        )

    def async_loop(self, **how: Any) -> "AsyncAgentLoop":
        """The same for an agent that runs in an event loop: each call is awaited."""
        from ..async_agent_loop import AsyncAgentLoop  # noqa: PLC0415 - as above

        return AsyncAgentLoop(self.loop(**how))

    def compact(
        self,
        policy: str | Policy | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        limit: int | None = None,
        model: str | None = None,
        lineage: str = MAIN,
        trigger: Trigger = Trigger.MANUAL,
        instructions: str | None = None,
        tracked_files: Callable[[], Iterable[str]] | None = None,
        idempotency_key: str | None = None,
        summariser: Summariser | None = None,
        chain: "SummaryChain | None" = None,
        pins: PinRules | None = None,
        activate: bool = True,
        dry_run: bool = False,
        cancellation: "Cancellation | None" = None,
    ) -> "Outcome":
        """Compact now, if the policy finds something to take out.

        `policy` is a name or a value, `settings` its fields, `limit` the tokens that a prompt may
        have, `summariser` who writes the summary, or `chain` who tries to and for how long; what is
        not said is as the store's settings have it. `activate=False` prepares a boundary for
        `activate()`; `dry_run` records nothing and asks no model. Raises NothingToCompactError
        where the view would not become smaller, CompactionVetoedError where a hook forbids it,
        CompactionCancelledError once `cancellation` was asked for.
        """
        from ..compaction import by_settings  # noqa: PLC0415

        store = self.store.settings
        order = by_settings.order_by(
            store,
            model,
            self._logged_context(lineage, limit),
            policy=self._policy(policy, settings),
            limit=limit,
            chain=by_settings.chain_by(store, model, (summariser,)) if summariser else chain,
            pins=pins,
            instructions=instructions,
            tracked_files=tracked_files,
            trigger=trigger,
            idempotency_key=idempotency_key,
            activate=activate,
        )
        with speaking_plainly(self.store.name):
            compactor = self.compactor(lineage)
            return compactor.explained(order) if dry_run else compactor.compact(order, cancellation)

    def compactor(self, lineage: str = MAIN) -> "Compactor":
        """The steps of a compaction on one lineage; a name that there is not yet begins one.

        Raises InvalidSettingError for a new name by which its views could not be named.
        """
        from ..compaction.compactor import Compactor  # noqa: PLC0415 - as above

        if lineage != MAIN and lineage not in self.lineages:
            check_nameable(lineage)
        return Compactor(self._events, self._reader(lineage), self.store.all_listeners)

    def prepared(self, *, lineage: str = MAIN) -> int | None:
        """The boundary that is recorded and not yet served; None where none is."""
        with speaking_plainly(self.store.name):
            chain = self._events.lineage_chain(self.namespace, self.key, lineage)
            return self._events.lineage_state(chain)[1].prepared or None

    def activate(self, *, lineage: str = MAIN) -> int:
        """Serve the boundary that was prepared last; returns it."""
        with speaking_plainly(self.store.name):
            return self.compactor(lineage).activate()

    def revert(self, *, lineage: str = MAIN) -> int:
        """Undo the newest compaction; returns the boundary that was reverted."""
        with speaking_plainly(self.store.name):
            return self.compactor(lineage).revert()

    def replay(
        self,
        policy: str | Policy,
        *,
        settings: Mapping[str, Any] | None = None,
        limit: int | None = None,
        summariser: str = "extractive",
        budget: int | None = None,
        model: str | None = None,
        lineage: str | None = None,
        dump_views: "str | Path | None" = None,
        cache: "str | Path | None" = None,
        allow_llm: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> "Replay":
        """What the model would have been sent at each recorded call, had `policy` decided.

        `policy` is a name or a value, `settings` its fields; `none` never compacts, `recorded`
        does as was done. `limit` is the tokens that a prompt may have, `model` the agent's;
        `summariser` is `extractive`, `recorded` or `llm`, `budget` the tokens that each summary
        may take. A model's summaries are taken from `cache`, a file, or else from the one in the
        user's cache folder; `allow_llm` has the model of the settings asked for what is missing.
        Nothing is written, but for what is asked for: `lineage` stores the decisions under a new
        name, and `dump_views` each view, as JSON Lines in a new file. `progress` is told how many
        calls are done, of how many. Tokens are the estimates beside the blocks.

        Raises PolicyFailedError where the policy raises, MissingSummariesError where a model
        would have to be asked, InvalidSettingError, NotFoundError, ConflictError and ExportError.
        """
        from ...analysis.replaying.deciders import Summaries  # noqa: PLC0415 - as above
        from ...analysis.replaying.run import run_replay  # noqa: PLC0415

        summaries = Summaries(
            summariser,
            budget,
            cache=Path(cache) if cache is not None else None,
            allow_llm=allow_llm,
            counts_missing=True,
        )
        with speaking_plainly(self.store.name):
            return run_replay(
                self,
                policy,
                settings,
                limit=limit,
                summaries=summaries,
                model=model,
                lineage=lineage,
                dump_views=Path(dump_views) if dump_views is not None else None,
                progress=progress,
            )

    def meter(
        self, *, limit: int | None = None, model: str | None = None, lineage: str = MAIN
    ) -> "Reading":
        """How full the context is, at which level, and what was pruned, for a status bar.

        `limit` is what a prompt may have, in tokens; else what `model` holds, or the settings say.
        """
        from .status_meter import reading  # noqa: PLC0415 - as above

        with speaking_plainly(self.store.name):
            return reading(self, model=model, limit=limit, lineage=lineage)

    # How

    def in_use(self, view: HistoryView) -> int:
        """Tell what a prompt with this view takes, by the session's calibration.

        As its newest call was reported, and what came since; else as it is estimated.
        """
        at = view.coordinate
        with speaking_plainly(self.store.name):
            reader = ViewReader(self._events, self.namespace, self.key, at.lineage)
            return reader.history(at.position, at.lineage_version)[0].use().used

    def compaction_sizes(
        self, lineage: str = MAIN, *, only: Collection[int] | None = None
    ) -> dict[int, Sizes]:
        """Measure what prompts took before and after each boundary of a lineage, by its number.

        As the provider reported it of the calls before and after; else as it is estimated. `only`
        measures these alone.
        """
        from ...analysis.replaying.recordings import decisions_of  # noqa: PLC0415 - as above
        from ...storage.compaction_sizes import measure_compactions  # noqa: PLC0415 - as above

        with speaking_plainly(self.store.name):
            decisions = decisions_of(self, lineage)
            return measure_compactions(self._events, decisions, only)

    def context_limit(
        self, *, limit: int | None = None, model: str | None = None, lineage: str = MAIN
    ) -> ContextLimit:
        """Tell how many tokens a prompt may have, and where that figure is from.

        `limit` where it is given, else the settings, what the log reports, what is known of the
        model (`model`, or the newest call's), and at last a default.
        """
        from ...models.context_limits import limit_by  # noqa: PLC0415 - as above

        logged = self._logged_context(lineage, limit)
        return limit_by(self.store.settings, model, logged, limit)

    def _logged_context(self, lineage: str, limit: int | None) -> LoggedContext:
        from ...storage.earlier_calls import logged_context  # noqa: PLC0415 - as above

        if limit is not None:
            return NOTHING_LOGGED  # what is given decides
        with speaking_plainly(self.store.name):
            return logged_context(self._events, self.namespace, self.key, lineage)

    def _shadows(
        self, policies: Sequence[str | Policy], terms: "Terms", habits: "Habits"
    ) -> "tuple[Shadow, ...]":
        from ...analysis.replaying.shadows import shadows_of  # noqa: PLC0415 - as above

        return shadows_of(self, policies, terms, habits)

    def _policy(
        self, policy: str | Policy | None, settings: Mapping[str, Any] | None
    ) -> Policy | None:
        """The policy of that name, else the agent's, with these settings; None where neither is
        given."""
        if policy is None:
            return self.store.settings.policy_with(settings) if settings else None
        return policy_named(policy, settings or {}) if isinstance(policy, str) else policy

    def check_lineage(self, lineage: str) -> None:
        """Raises NotFoundError where no compaction was ever made on it.

        `main` is always there, and so is `recorded` of what was imported.
        """
        if lineage == MAIN or (lineage == RECORDED and self.source is not None):
            return
        if lineage not in (known := self.lineages):
            exist = ", ".join(sorted({MAIN, *known}))
            raise NotFoundError(
                f"session {self.key!r} has no lineage {lineage!r} (there is: {exist})"
            )

    def _opened(self) -> SessionOpened:
        with speaking_plainly(self.store.name):
            return self._events.opened(self.namespace, self.key)

    def _single(self, position: int) -> Event:
        with speaking_plainly(self.store.name):
            chain = self._events.session_chain(self.namespace, self.key)
            return self._events.read(chain, Ranges.of([position]))[0].event

    def _reader(self, lineage: str) -> ViewReader:
        if (reader := self._readers.get(lineage)) is None:
            reader = ViewReader(self._events, self.namespace, self.key, lineage)
            self._readers[lineage] = reader
        return reader

    def _change(self, decision: Callable[[Session], Any]) -> None:
        with speaking_plainly(self.store.name):
            self._decide(decision)

    def _decide(
        self,
        decision: Callable[[Session], T],
        *,
        key: str | None = None,
        expect: int | None = None,
    ) -> T | AppendKey:
        return decided(
            self._events, self.namespace, self.key, decision, append_key=key, expect=expect
        )

    def _checked(self, positions: tuple[int | Ranges, ...]) -> Ranges:
        wanted = positions_of(positions)
        with speaking_plainly(self.store.name):
            chain = self._events.session_chain(self.namespace, self.key)
            head = self._events.head(chain)[0]
            log = self._events.read(chain, wanted & Ranges.span(1, head))
            check_blocks(log, wanted, self._reader(MAIN).retracted(head))
        return wanted

    def _groups(self, positions: tuple[int | Ranges, ...]) -> Ranges:
        wanted = self._checked(positions)
        with speaking_plainly(self.store.name):
            chain = self._events.session_chain(self.namespace, self.key)
            head = self._events.head(chain)[0]
            retracted = self._reader(MAIN).retracted(head)
            return whole_groups(self._events, chain, wanted, head, retracted)
