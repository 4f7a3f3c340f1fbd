"""Computes the context meter: the size of a session's view, and what each call saw of it."""

from collections.abc import Callable
from datetime import date, datetime
from itertools import takewhile

from ....domain.blocks import UNSENT_KINDS
from ....domain.compaction import MAIN_LINEAGE
from ....domain.context_limit import ContextLimit, LoggedContext
from ....domain.errors import NotFoundError
from ....domain.models import ModelFacts
from ....domain.session_events import BlockAppended, ModelCalled, Usage
from ....domain.source_time import parse_source_time
from ....domain.token_estimate import estimate_text
from ....projections.history_view import HistoryView
from ....projections.read_models.session_row import (
    SessionRow,
    SessionRowSettings,
    compute_utilization,
    name_level,
)
from ....projections.read_models.timestamps import format_timestamp
from ...models.model_catalog import look_up_facts
from ..earlier_calls import read_logged_context
from ..event_log.event_store import EventStore
from ..event_log.stored_row import StoredEventLike, StoredRow
from ..view_reader import ViewReader
from .row_batch import RowBatch, TouchedSession

ResolveLimit = Callable[[LoggedContext], ContextLimit]
"""Returns how many tokens a prompt may have."""
OpenReader = Callable[[str, str], ViewReader]
"""Returns a session's reader on `main`; the last one is cached, as events come in runs."""

PRICE_COLUMNS = ("input_usd", "cached_usd", "cache_write_usd", "output_usd")
MARK_COPIES = """
    UPDATE model_calls SET copy_of = (
        SELECT min(other.id) FROM model_calls AS other
        WHERE other.call_id = model_calls.call_id AND other.session_id <> model_calls.session_id
            AND other.id < model_calls.id AND other.copy_of IS NULL
            AND other.fingerprint IS NULL AND other.model IS model_calls.model
            AND other.input_tokens IS model_calls.input_tokens
            AND other.cached_tokens IS model_calls.cached_tokens
            AND other.cache_write_tokens IS model_calls.cache_write_tokens
    ) WHERE id = ? AND prompt_tokens IS NOT NULL
"""
"""Files of resumed or forked agents repeat the calls of the file that they continue."""


class ContextBatch:
    """Counts what is appended to a view, and reads the view again only if it changed otherwise."""

    def __init__(
        self,
        store: EventStore,
        rows: RowBatch,
        settings: SessionRowSettings,
        limit_of: ResolveLimit,
        open_reader: OpenReader,
    ) -> None:
        self.store = store
        self.rows = rows
        self.settings = settings
        self._limit_of = limit_of
        self._open_reader = open_reader
        self._facts: dict[tuple[str, date], ModelFacts | None] = {}

    def add_call(self, touched: TouchedSession, number: int, call: ModelCalled) -> None:
        usage = call.usage or Usage()
        seen = self._measure_seen(touched, call)
        prompt = usage.context
        shown = prompt if prompt is not None else seen
        called_at = (call.source_time and parse_source_time(call.source_time)) or call.timestamp
        logged = LoggedContext(call.model, call.context_window, prompt or 0)
        limit = self.settings.context_limit or self._limit_of(logged).tokens
        share = compute_utilization(shown, limit) if shown is not None else None
        touched.row.has_calls = 1
        touched.row.model = call.model or touched.row.model
        self.rows.execute(
            "UPDATE model_calls SET repeated = 1 WHERE session_id = ? AND call_id = ? AND id < ?",
            touched.row.id,
            call.call_id,
            number,
        )
        self.rows.add(
            "model_calls",
            id=number,
            session_id=touched.row.id,
            position=call.originator_version,
            call_id=call.call_id,
            repeated=0,
            model=call.model,
            lineage=call.lineage,
            lineage_version=call.lineage_version,
            view_position=call.position,
            renderer=call.renderer,
            fingerprint=call.fingerprint,
            view_tokens=seen,
            prompt_tokens=prompt,
            cached_tokens=usage.cache_read,
            cache_write_tokens=usage.cache_write,
            cache_write_1h_tokens=usage.cache_write_1h,
            input_tokens=usage.input,
            output_tokens=usage.output,
            reasoning_tokens=usage.reasoning,
            utilisation=share,
            level=name_level(share) if share is not None else None,
            cost_usd=call.cost_usd,
            latency_s=call.latency_s,
            stop_reason=call.stop_reason,
            called_at=format_timestamp(called_at),
            **self._list_prices(call, called_at),
        )
        if touched.row.source is not None:
            self.rows.execute(MARK_COPIES, number)

    def _list_prices(self, call: ModelCalled, at: datetime) -> dict[str, float | None]:
        parts = None
        if call.model and call.usage:
            of_day = (call.model, at.date())
            if of_day not in self._facts:
                self._facts[of_day] = look_up_facts(call.model, at=at)
            facts = self._facts[of_day]
            parts = facts.compute_cost_parts(call.usage) if facts else None
        return dict(zip(PRICE_COLUMNS, parts or (None,) * len(PRICE_COLUMNS), strict=True))

    def measure_session(self, row: SessionRow) -> None:
        """Measure a session's view, the context in use, and its limit."""
        row.in_use, row.reported = self._measure_view(row, row.position), None
        if not row.has_calls:
            return  # without reported usage, the estimate cannot improve
        use = self._open_reader(row.namespace, row.key).read_history()[0].measure_usage()
        row.in_use, row.reported = use.used_tokens, use.reported_tokens
        logged = read_logged_context(self.store, row.namespace, row.key, at=row.position)
        found = self._limit_of(logged)
        row.context_limit, row.limit_source = found.tokens, found.source.value

    def _measure_view(self, row: SessionRow, position: int) -> int:
        """Return the tokens of the view at a session's newest position, reading it if need be."""
        if row.view_tokens is None:
            view = self._read_view(row, MAIN_LINEAGE, position, row.served_version)
            row.view_tokens = view.tokens
            row.system_tokens = estimate_text(view.system_prompt or "")
            tools = view.tool_definitions
            row.tools_tokens = estimate_text(str(tools)) if tools else 0
        return row.view_tokens

    def _measure_seen(self, touched: TouchedSession, call: ModelCalled) -> int | None:
        row = touched.row
        if (
            row.is_served(call.lineage)
            and call.lineage_version == row.served_version
            and call.position >= row.steady_from
        ):
            now = self._measure_view(row, call.originator_version)
            return now - self._measure_growth(touched, call)
        try:
            return self._read_view(row, call.lineage, call.position, call.lineage_version).tokens
        except NotFoundError:
            return None  # an invalid coordinate, which `verify` reports

    def _measure_growth(self, touched: TouchedSession, call: ModelCalled) -> int:
        later = takewhile(lambda grown: grown[0] > call.position, reversed(touched.growth))
        total = sum(tokens for _, tokens in later)
        if call.position < touched.first - 1:
            earlier = self.store.recorder.select_events(
                call.originator_id, gt=call.position, lte=touched.first - 1
            )
            total += sum(row.tokens for row in earlier if not self._is_unsent(row))
        return total

    def _is_unsent(self, row: StoredRow) -> bool:
        if not may_be_unsent(row, self.store.mapper.read_plaintext(row)):
            return False
        event = self.store.mapper.to_domain_event(row)
        return isinstance(event, BlockAppended) and event.block.kind in UNSENT_KINDS

    def _read_view(self, row: SessionRow, lineage: str, at: int, version: int) -> HistoryView:
        return ViewReader(self.store, row.namespace, row.key, lineage).read_view(at, version)


def may_be_unsent(row: StoredEventLike, plaintext: bytes) -> bool:
    """Return whether an event may be a block that models do not see; may be a false alarm."""
    return row.topic == BlockAppended.TOPIC and (
        b'"note"' in plaintext or b'"artifact"' in plaintext
    )
