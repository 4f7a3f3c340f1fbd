"""Reads and writes the streams of one session: what a session, its loop and its audits work on."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, cast

from ....domain.compaction import MAIN_LINEAGE, RECORDED_LINEAGE, check_lineage_syntax
from ....domain.context_limit import NOTHING_LOGGED, LoggedContext
from ....domain.errors import NotFoundError
from ....domain.event import Event
from ....domain.hooks import Listener
from ....domain.ranges import Ranges
from ....domain.session import Session, SessionState, derive_session_id
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
from ...storage.event_log.chain import Chain
from ...storage.event_log.event_store import EventStore
from ...storage.event_log.storage_errors import translate_storage_errors
from ...storage.event_log.stored_row import AppendKey
from ...storage.view_reader import ViewReader
from .block_lookup import check_blocks, collect_positions, complete_groups
from .decisions import decide_with_retry

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


def list_logs(context: "StoreContext", namespace: str | None = None) -> "list[SessionLog]":
    """List the logs of all sessions, or of those in a namespace, by namespace and key."""
    with translate_storage_errors(context.name):
        streams = context.events.recorder.select_streams(namespace)
    return [
        SessionLog(context, stream.namespace, stream.session)
        for stream in streams
        if stream.lineage is None
    ]


class SessionLog:
    """The streams of one session in one open database."""

    def __init__(self, context: "StoreContext", namespace: str, key: str) -> None:
        self.context = context
        self.namespace = namespace
        self.key = key
        self.id = derive_session_id(namespace, key)
        self._readers: dict[str, ViewReader] = {}

    @property
    def events(self) -> EventStore:
        return self.context.events

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
    def title(self) -> str | None:
        titled = self.state.titled
        return (
            cast(SessionTitled, self._event(titled)).title if titled else self.read_opening().title
        )

    @property
    def parent(self) -> Parent | None:
        """The session, and the call in it, that this one works for."""
        parented = self.state.parented
        return (
            cast(ParentNamed, self._event(parented)).parent
            if parented
            else self.read_opening().parent
        )

    @property
    def source(self) -> str | None:
        """The format that the session was imported from."""
        return self.read_opening().source

    @property
    def project(self) -> str | None:
        """The folder that the session's agent worked in, or a name."""
        return self.read_opening().project

    @property
    def forked_from(self) -> Fork | None:
        """Where the session left its parent, if it is a fork."""
        return self.read_opening().fork

    @property
    def incomplete_import(self) -> str | None:
        """The transcript whose import into this session was interrupted: import it again."""
        with translate_storage_errors(self.context.name):
            return self.events.recorder.select_incomplete_import(self.namespace, self.key)

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
        if lineage == MAIN_LINEAGE or (lineage == RECORDED_LINEAGE and self.source is not None):
            return
        if lineage not in (known := self.lineages):
            exist = ", ".join(sorted({MAIN_LINEAGE, *known}))
            raise NotFoundError(
                f"session {self.key!r} has no lineage {lineage!r} (there is: {exist})"
            )

    # Views

    def reader(self, lineage: str = MAIN_LINEAGE) -> ViewReader:
        """Reads the views of a lineage."""
        if (reader := self._readers.get(lineage)) is None:
            reader = ViewReader(self.events, self.namespace, self.key, lineage)
            self._readers[lineage] = reader
        return reader

    def compactor(self, lineage: str = MAIN_LINEAGE) -> "Compactor":
        """The steps of a compaction on one lineage, which begins if it is new.

        Raises InvalidSettingError for a new name that cannot be part of a view's name.
        """
        from ..compaction.compactor import Compactor  # noqa: PLC0415 - start-up time

        if lineage != MAIN_LINEAGE and lineage not in self.lineages:
            check_lineage_syntax(lineage)
        return Compactor(self.events, self.reader(lineage), self.listeners)

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
        self, decision: Callable[[Session], T], *, key: str | None = None, expect: int | None = None
    ) -> T | AppendKey:
        """Store what a decision records, and return its answer; see `decide_with_retry`."""
        return decide_with_retry(
            self.events, self.namespace, self.key, decision, append_key=key, expect=expect
        )

    def record_call(self, view: HistoryView, call_id: str, **call: Unpack[CallReport]) -> None:
        """Record that a model was sent `view`; its coordinate and fingerprint prove which."""
        at, renderer = view.coordinate, call.get("renderer", "neutral")
        known = RENDERERS.get(renderer)
        fields = {
            **call,
            "call_id": call_id,
            "renderer": known.label if known else renderer,
            "position": at.position,
            "lineage": at.lineage,
            "lineage_version": at.lineage_version,
            "fingerprint": view.fingerprint,
        }
        self.change(lambda session: session.record_call(fields))

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

    def check_positions(self, positions: tuple[int | Ranges, ...]) -> Ranges:
        """Return the positions as ranges; InvalidPositionError if one is no visible block."""
        wanted = collect_positions(positions)
        with translate_storage_errors(self.context.name):
            chain = self.chain()
            head = self.events.read_head(chain)[0]
            log = self.events.read(chain, wanted & Ranges.span(1, head))
            check_blocks(log, wanted, self.reader(MAIN_LINEAGE).read_retracted(head))
        return wanted

    def close_groups(self, positions: tuple[int | Ranges, ...]) -> Ranges:
        """Return the positions with the tool pairs and messages that they are part of."""
        wanted = self.check_positions(positions)
        with translate_storage_errors(self.context.name):
            chain = self.chain()
            head = self.events.read_head(chain)[0]
            retracted = self.reader(MAIN_LINEAGE).read_retracted(head)
            return complete_groups(self.events, chain, wanted, head, retracted)

    def _event(self, position: int) -> Event:
        with translate_storage_errors(self.context.name):
            return self.events.read(self.chain(), Ranges.of([position]))[0].event
