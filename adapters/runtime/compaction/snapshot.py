"""Reads what a compaction begins with: the newest view, its window, and a prepared boundary's."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import ceil

from ....domain.cached_property import cached_property
from ....domain.compaction_events import CompactBoundary, Trigger
from ....domain.item import WindowItem
from ....domain.policies.policy import is_due
from ....domain.ranges import Ranges
from ....domain.session import SessionState
from ....domain.window import Window
from ....projections.compaction_window import find_recalled, make_recalled_items, make_window
from ....projections.history_view import HistoryFold
from ....projections.view_content import ViewEntry
from ...storage.view_reader import ViewReader
from .options import CompactionRequest
from .outcome import CompactionOutcome, make_stored_outcome


class SessionSnapshot:
    """The newest view of one lineage, with the decisions on which it is based."""

    def __init__(self, reader: ViewReader, request: CompactionRequest) -> None:
        self._store = store = reader.store
        self._reader = reader
        self._chain = reader.chain
        # Read before the view, so that a decision in between makes the plan stale.
        self.decided = store.read_lineage_state(reader.lineage_chain)[1]
        with reader.advancing:
            self.history, self.view = reader.read_newest()
            self.boundary = self.history.boundary
            window = make_window(
                self.history,
                self.view,
                request,
                self._read_pinned(),
                now=store.clock() if self.boundary else None,
            )
        if request.cache_is_cold:
            window = replace(window, cached=0)
        self.share = 1.0 if request.usage is None else request.usage / max(window.tokens, 1)
        """The provider's count of the view divided by our estimate, if it reported one."""
        self.window = (
            window if request.usage is None else apply_reported_usage(window, request.usage)
        )

    @cached_property
    def state(self) -> SessionState:
        """The session's state at the view's newest position."""
        return self.read_state_at(self.view.coordinate.position)

    def read_state_at(self, position: int) -> SessionState:
        return self._store.read_head(self._chain, position)[1]

    def read_originals(self, covers: Ranges) -> Iterable[WindowItem]:
        """Read blocks from the log, whatever the view shows of them."""
        return make_recalled_items(self._store.read(self._chain, covers))

    def _read_pinned(self) -> list[ViewEntry]:
        """Return the blocks that earlier boundaries took out and that were pinned since."""
        if not (missing := find_recalled(self.history)):
            return []
        missing -= self._reader.read_retracted(self._store.read_head(self._chain)[0])
        pinned = HistoryFold().apply_all(self._store.read(self._chain, missing))
        return list(pinned.entries.values())


def apply_reported_usage(window: Window, usage: int) -> Window:
    """Scale the window to the provider's count, which is more accurate than our estimate."""
    share = usage / max(window.tokens, 1)
    if share <= 1:
        return replace(window, usage=usage, in_use=usage)
    items = [replace(item, tokens=ceil(item.tokens * share)) for item in window.items]
    return replace(window, items=items, usage=usage, in_use=usage)


@dataclass(frozen=True)
class PreparedView:
    """The view that would begin at the prepared boundary, and the window of the current one."""

    request: CompactionRequest
    snapshot: SessionSnapshot
    history: HistoryFold
    window: Window

    @property
    def now(self) -> Window:
        return self.snapshot.window

    @property
    def boundary(self) -> CompactBoundary:
        assert self.history.boundary is not None, "it begins at the prepared one"
        return self.history.boundary

    @cached_property
    def misfit(self) -> str | None:
        """The reason why it must not be served any more, None if it fits."""
        history, boundary = self.history, self.boundary
        served = self.snapshot.boundary.originator_version if self.snapshot.boundary else 0
        if (beneath := self.snapshot.decided.prepared_beneath) != served:
            old, new = (
                f"boundary {one}" if one else "the whole history" for one in (beneath, served)
            )
            return f"it builds upon {old}, and by now {new} is served"
        covers = history.summary.covers if history.summary else Ranges()
        gone = covers | boundary.hidden
        changes = (
            (history.retracted & covers, "was taken back"),
            (history.reopened & gone, "waits for an answer again"),
            (history.pinned & gone, "was pinned"),
            (Ranges.of(at for at in history.hides if at in history.entries), "was hidden"),
        )
        for positions, what in changes:
            if positions:
                return f"{positions} {what} since it was prepared"
        # An estimate, which reads no blocks: a model call may be waiting for the answer.
        gained = self.now.used_tokens - self.window.used_tokens
        share = self.request.minimum_gain if self.request.is_automatic else 0
        if gained <= 0 or gained < share * self.now.used_tokens:
            return f"by now it would save {gained:,} of {self.now.used_tokens:,} tokens"
        return None

    @cached_property
    def is_enough(self) -> bool:
        """Whether the policy would leave the new view as it is."""
        return not is_due(self.request.policy, replace(self.window, trigger=Trigger.THRESHOLD))

    @property
    def outcome(self) -> CompactionOutcome:
        """What the swap does, as a compaction's outcome."""
        reason = f"boundary {self.boundary.originator_version} was prepared"
        return replace(
            make_stored_outcome(self.boundary, self.history.summary, reason),
            pre_tokens=self.now.used_tokens,
            post_tokens=self.window.used_tokens,
        )


def read_prepared_view(
    reader: ViewReader, snapshot: SessionSnapshot, request: CompactionRequest
) -> PreparedView:
    """Return the view that the session's prepared boundary would begin."""
    with reader.advancing:
        history, view = reader.read_prepared(snapshot.decided.prepared, snapshot.view.coordinate)
        window = make_window(history, view, request)
    if request.usage is not None:
        window = apply_reported_usage(window, round(window.tokens * snapshot.share))
    return PreparedView(request, snapshot, history, window)
