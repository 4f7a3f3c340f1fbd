"""Reads and writes the streams of one session: what a session, its loop and its audits work on."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, TypeVar, Unpack, cast
from uuid import UUID

from eventsourcing.persistence import IntegrityError

from ....domain.compaction import MAIN_LINEAGE, RECORDED_LINEAGE, check_lineage_syntax
from ....domain.context_limit import NOTHING_LOGGED, LoggedContext
from ....domain.errors import (
    ConflictError,
    CutbankError,
    InvalidPositionError,
    InvalidSettingError,
    NotFoundError,
)
from ....domain.event import Event
from ....domain.hooks import Listener
from ....domain.ranges import Ranges
from ....domain.session import Session, SessionState
from ....domain.session_events import (
    Fork,
    Parent,
    ParentNamed,
    SessionOpened,
    SessionTitled,
    Usage,
)
from ....projections.history_view import HistoryView
from ....projections.rendering.catalog import RENDERERS
from ...storage.earlier_calls import read_logged_context
from ...storage.event_log.chain import Chain, make_missing_error
from ...storage.event_log.event_store import EventStore
from ...storage.event_log.log_tables import AppendKey
from ...storage.event_log.storage_errors import translate_storage_errors
from ...storage.view_reader import ViewReader
from .block_groups import SessionBlocks
from .recalled_blocks import collect_positions

if TYPE_CHECKING:
    from ...settings.settings import Settings
    from ..compaction.compactor import Compactor
    from .store_context import StoreContext

T = TypeVar("T")


class CallReport(TypedDict, total=False):
    """What is known of a call of a model; nothing has to be given."""

    renderer: str
    """The format in which the view was sent, as `render` names it."""
    model: str | None
    usage: Usage | None
    """What the provider reported; later token counts build on it."""
    cost_usd: float | None
    latency_s: float | None
    stop_reason: str | None


class SessionInfo(NamedTuple):
    """What a session is, and where it is from; None where it was never recorded."""

    title: str | None
    parent: Parent | None
    """The session, and the call in it, that this one works for."""
    source: str | None
    """The format that the session was imported from."""
    project: str | None
    """The folder that its agent worked in, or a name."""
    forked_from: Fork | None
    incomplete_import: str | None
    """The transcript whose import into this session was interrupted: import it again."""
    lineages: tuple[str, ...]
    """The lineages that were written to, by name."""
    state: SessionState
    """Turn, open calls and sizes, as of now."""
    opened_at: datetime
    changed_at: datetime
    """The time of its newest event."""


def check_name(what: str, name: str) -> None:
    """Raise InvalidPositionError, naming `what`, if it cannot be a key or namespace."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidPositionError(f"{what} {name!r} is not valid Unicode") from None
    if not name or "\0" in name:
        raise InvalidPositionError(f"{what} {name!r} must have characters, and no NUL among them")


def check_time_zone(time: datetime) -> None:
    """Raise InvalidSettingError if it is not known where the time is meant."""
    if time.tzinfo is None:
        raise InvalidSettingError(
            f"the time {time.isoformat()} has no time zone; add one, e.g. +00:00"
        )


def make_used_key_error(done: AppendKey) -> ConflictError:
    return ConflictError(
        f"the key {done.key!r} was used for something else at #{done.first}: give each append a key"
        " of its own"
    )


def make_call_fields(view: HistoryView, renderer: str) -> dict[str, Any]:
    """Return which view a call was sent, as its event says it, and in which format."""
    at, known = view.coordinate, RENDERERS.get(renderer)
    return {
        "renderer": known.label if known else renderer,
        "position": at.position,
        "lineage": at.lineage,
        "lineage_version": at.lineage_version,
        "fingerprint": view.fingerprint,
    }


def list_logs(
    context: "StoreContext", namespace: str | None = None, **which: Any
) -> "list[SessionLog]":
    """List the logs of all sessions, or of those that `select_sessions` finds, by name."""
    with translate_storage_errors(context.name):
        names = context.events.recorder.select_sessions(namespace, **which)
    return [SessionLog(context, *name) for name in names]


class SessionLog:
    """The streams of one session in one open database."""

    def __init__(self, context: "StoreContext", namespace: str, key: str) -> None:
        self.context = context
        self.namespace = namespace
        self.key = key
        self._readers: dict[str, ViewReader] = {}
        self._read_id: UUID | None = None
        """The stream of the cached readers."""

    @property
    def events(self) -> EventStore:
        return self.context.events

    @property
    def id(self) -> UUID:
        """The session's own stream; another one once the session was deleted."""
        return self.events.find_session_id(self.namespace, self.key)

    @property
    def settings(self) -> "Settings":
        return self.context.settings

    @property
    def listeners(self) -> list[Listener]:
        return self.context.listeners

    # What the log says of the session

    @property
    def position(self) -> int:
        """The newest position."""
        with translate_storage_errors(self.context.name):
            return self.events.read_head(self.chain())[0]

    @property
    def state(self) -> SessionState:
        """Turn, open calls and sizes, as of now."""
        with translate_storage_errors(self.context.name):
            return self.events.read_head(self.chain())[1]

    @property
    def info(self) -> SessionInfo:
        """What the session is, and where it is from, as of now."""
        state, opening = self.state, self.read_opening()
        named = cast(SessionTitled, self.read_event(state.titled)) if state.titled else opening
        with translate_storage_errors(self.context.name):
            incomplete = self.events.recorder.select_incomplete_import(self.namespace, self.key)
        return SessionInfo(
            title=named.title,
            parent=self.parent,
            source=opening.source,
            project=opening.project,
            forked_from=opening.fork,
            incomplete_import=incomplete,
            lineages=tuple(self.lineages),
            state=state,
            opened_at=opening.timestamp,
            changed_at=self.read_event(self.position).timestamp,
        )

    @property
    def parent(self) -> Parent | None:
        """The session, and the call in it, that this one works for."""
        parented = self.state.parented
        named = cast(ParentNamed, self.read_event(parented)) if parented else self.read_opening()
        return named.parent

    @property
    def lineages(self) -> list[str]:
        """The lineages that were written to, by name."""
        with translate_storage_errors(self.context.name):
            streams = self.events.recorder.select_streams(self.namespace, self.key)
            return [stream.lineage for stream in streams if stream.lineage is not None]

    def chain(self) -> Chain:
        """The streams that hold the session's events: its parents' up to each fork, and its own."""
        return self.events.find_session_chain(self.namespace, self.key)

    def read_opening(self) -> SessionOpened:
        """The event that opened the session."""
        with translate_storage_errors(self.context.name):
            return self.events.read_opening(self.namespace, self.key)

    def check_lineage(self, lineage: str) -> None:
        """Raise NotFoundError if no compaction was ever recorded on the lineage.

        `main` always exists, and so does `recorded` in a session that was imported.
        """
        if lineage == MAIN_LINEAGE or (lineage == RECORDED_LINEAGE and self.read_opening().source):
            return
        if lineage not in (known := self.lineages):
            exist = ", ".join(sorted({MAIN_LINEAGE, *known}))
            raise NotFoundError(
                f"session {self.key!r} has no lineage {lineage!r} (there is: {exist})"
            )

    # Views

    def reader(self, lineage: str = MAIN_LINEAGE) -> ViewReader:
        """Reads the views of a lineage."""
        if self.events.is_batching:  # what it caches may be undone
            return ViewReader(self.events, self.namespace, self.key, lineage)
        if self._read_id != (id := self.id):
            self._readers, self._read_id = {}, id
        if (reader := self._readers.get(lineage)) is None:
            reader = ViewReader(self.events, self.namespace, self.key, lineage)
            self._readers[lineage] = reader
        return reader

    def compactor(self, lineage: str = MAIN_LINEAGE) -> "Compactor":
        """The steps of a compaction on one lineage, which begins if it is new.

        Raises InvalidSettingError for a new name that cannot be part of a view's name.
        """
        from ..compaction.compactor import Compactor  # noqa: PLC0415 - start-up time

        self.events.refuse_batch("a compaction")
        if lineage != MAIN_LINEAGE and lineage not in self.lineages:
            check_lineage_syntax(lineage)
        return Compactor(self.reader(lineage), self.listeners)

    def find_prepared(self, *, lineage: str = MAIN_LINEAGE) -> int | None:
        """Return the boundary that is recorded and not yet served; None if there is none."""
        with translate_storage_errors(self.context.name):
            chain = self.events.find_lineage_chain(self.namespace, self.key, lineage)
            return self.events.read_lineage_state(chain)[1].prepared or None

    def measure_use(self, view: HistoryView) -> int:
        """Return the tokens that a prompt with this view takes, by the session's calibration.

        As its newest call was reported, and what came since; else as it is estimated.
        """
        at = view.coordinate
        with translate_storage_errors(self.context.name):
            reader = ViewReader(self.events, self.namespace, self.key, at.lineage)
            return (
                reader.read_history(at.position, at.lineage_version)[0].measure_usage().used_tokens
            )

    def logged_context(self, lineage: str, limit: int | None = None) -> LoggedContext:
        """Read what the session's calls tell of its model's context, unless `limit` is given."""

        if limit is not None:
            return NOTHING_LOGGED
        with translate_storage_errors(self.context.name):
            return read_logged_context(self.events, self.namespace, self.key, lineage)

    # Decisions

    def change(self, decision: Callable[[Session], Any]) -> None:
        """Store what a decision records."""
        with translate_storage_errors(self.context.name):
            self.decide(decision)

    def decide(
        self,
        decision: Callable[[Session], T],
        *,
        key: str | None = None,
        expect: int | None = None,
        keys: Sequence[AppendKey] = (),
    ) -> T | AppendKey:
        """Return a decision's result once it is stored; of an append stored before, its key.

        A decision with a `key` returns the first and last position of what it appends; one that
        names its blocks itself fills `keys`. `expect` is the position that the caller believes
        newest. Raises NotFoundError if the session was never
        opened, ConflictError if its position differs from `expect`, and the decision's own errors.
        """
        events = self.events
        with events.lock_streams(self.id):
            while True:
                if key is not None and (done := events.select_key(self.id, key)):
                    events.refresh(done.originator_id)
                    if self._load().id == done.originator_id:
                        return done
                    continue  # another process deleted that session
                session = self._load()
                if expect is not None and session.version != expect:
                    events.refresh(session.id)
                    session = self._load()
                    if session.version != expect:
                        raise ConflictError(
                            f"session {self.key!r} is at #{session.version}, not #{expect}:"
                            " read it again before you append"
                        )
                before = session.version
                try:
                    result = decision(session)
                except CutbankError:
                    # Drop the partial decision; if it was based on old state, repeat it.
                    events.evict(session.id)
                    if self._load().version == before:
                        raise
                    continue
                if session.version == before:  # nothing to store, if that is true of the newest
                    events.refresh(session.id)
                    if self._load().version == before:
                        return result
                    continue
                stored = list(keys)
                if key is not None:
                    first, last, *_ = cast("tuple[int, ...]", result)
                    stored.append(AppendKey(session.id, key, first, last))
                try:
                    events.save(session, keys=stored)
                except IntegrityError:
                    continue  # another process appended first, so there is progress
                return result

    def _load(self) -> Session:
        if (session := self.events.load_session(self.namespace, self.key)) is None:
            raise make_missing_error(self.key)
        return session

    def fork(
        self,
        key: str,
        *,
        at: int | None = None,
        lineage: str = MAIN_LINEAGE,
        source: str | None = None,
        title: str | None = None,
    ) -> "SessionLog":
        """Store a fork of the session, named `key`; see `StoredSession.fork`.

        Raises InvalidPositionError if the position `at` does not exist, ConflictError if the key is
        taken.
        """
        check_name("session key", key)
        events, namespace = self.events, self.namespace
        forked = SessionLog(self.context, namespace, key)
        taken = f"session {key!r} exists already: choose another key"
        with translate_storage_errors(self.context.name), events.lock_streams(forked.id):
            position, state = events.read_head(self.chain(), at)
            if at is not None and position != at:
                raise InvalidPositionError(f"#{at} does not exist: the session ends at #{position}")
            if events.load_session(namespace, key) is not None:
                raise ConflictError(taken)
            in_effect = self.reader(lineage).read_state_in_effect(position)[1]
            opened = Session.fork(
                namespace,
                key,
                generation=events.find_generation(namespace, key),
                clock=events.clock,
                subject=events.find_subject(namespace, self.key),
                fork=Fork(
                    namespace=namespace,
                    key=self.key,
                    position=position,
                    lineage=lineage,
                    lineage_version=in_effect.switched,
                    generation=events.find_generation(namespace, self.key),
                ),
                at=state,
                source=source,
                title=title,
                project=self.read_opening().project,
            )
            try:
                events.save(opened)
            except IntegrityError:
                # Another process took the key at the same moment.
                raise ConflictError(taken) from None
        return forked

    def record_call(
        self, view: HistoryView | int, call_id: str, **call: Unpack[CallReport]
    ) -> None:
        """Record that a model was sent `view`; see `StoredSession.record_call`."""
        if isinstance(view, int):
            fields = asdict(self.reader().find_coordinate(view)[0])
        else:
            fields = make_call_fields(view, call.pop("renderer", "neutral"))
        self.change(lambda session: session.record_call({**call, "call_id": call_id, **fields}))

    def record_overflow(self, message: str, view: HistoryView, *, model: str | None) -> None:
        """Record that a provider refused a view as too long."""
        at = view.coordinate
        overflow = {
            "message": message,
            "model": model,
            "lineage": at.lineage,
            "lineage_version": at.lineage_version,
        }
        self.change(lambda session: session.record_overflow(overflow))

    def check_positions(
        self, positions: tuple[int | Ranges, ...], *, whole: bool = False
    ) -> Ranges:
        """Return the positions as ranges; InvalidPositionError if one is no visible block.

        With `whole`, the tool pairs and messages that they are part of are included.
        """
        wanted = collect_positions(positions)
        with translate_storage_errors(self.context.name):
            blocks = SessionBlocks(self.reader())
            blocks.check(wanted)
            return blocks.close_groups(wanted) if whole else wanted

    def find_key(self, key: str) -> AppendKey | None:
        """Return the append of that key, which may be of a session that this one is forked from."""
        for segment in reversed(self.chain().segments):
            known = self.events.select_key(segment.originator_id, key)
            if known and (segment.last is None or known.last <= segment.last):
                return known
        return None

    def read_event(self, position: int) -> Event:
        """Return the event at a position."""
        with translate_storage_errors(self.context.name):
            found = self.events.read(self.chain(), Ranges.of([position]), with_records=True)
        return found[0].event
