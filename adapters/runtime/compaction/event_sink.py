"""Notifies listeners of the events of one compaction and collects their answers."""

from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from ....domain.compaction import derive_lineage_id
from ....domain.hooks import CompactionEvent, CompactionEventKind, Listener, Veto, ViewStats
from ....domain.utilization import PruningResult
from ....projections.hook_payloads import compact_boundary, context_pruned
from ....projections.planned_compaction import PlannedCompaction
from ...storage.view_reader import ViewReader
from .listeners import notify_listeners
from .options import CompactionRequest
from .outcome import CompactionOutcome
from .summary_chain import AcceptedDraft, DraftRefusal, SummaryObserver


class CompactionEventSink(SummaryObserver):
    def __init__(
        self,
        listeners: Sequence[Listener],
        reader: ViewReader,
        request: CompactionRequest,
        planned: PlannedCompaction,
    ) -> None:
        self._listeners = listeners
        self._lineage = derive_lineage_id(reader.namespace, reader.key, reader.lineage)
        window = planned.window
        summaries = int(window.summary is not None)
        self._before = ViewStats(window.tokens, len(window.items), summaries)
        self._so_far = CompactionEvent(
            moment=CompactionEventKind.PRE_COMPACT,
            session=reader.key,
            namespace=reader.namespace,
            lineage=reader.lineage,
            trigger=request.trigger,
            policy=request.policy.name,
            before=self._before,
            compacted_blocks=len(planned.settlement.removed_items),
            instructions=request.instructions,
        )

    def ask_hooks(self) -> Veto:
        """Return all instructions, joined, and the first veto."""
        wishes, veto = [self._so_far.instructions], None
        for answer in self._notify(CompactionEventKind.PRE_COMPACT):
            wishes.append(answer.instructions)
            veto = veto if veto is not None else answer.veto
        together = "\n".join(wish for wish in wishes if wish) or None
        self._so_far = replace(self._so_far, instructions=together)
        if veto is not None:
            self._notify(CompactionEventKind.REJECTED, reason=f"vetoed: {veto}")
        return Veto(instructions=together, veto=veto)

    def note_request(self) -> None:
        self._notify(CompactionEventKind.REQUESTED)

    def note_begin(self, summarizer: str) -> None:
        self._notify(CompactionEventKind.SUMMARIZING, summarizer=summarizer)

    def note_refusal(self, refusal: DraftRefusal) -> None:
        self._notify(
            CompactionEventKind.REJECTED,
            summarizer=refusal.summarizer,
            reason=str(refusal),
            rule=refusal.rule,
            error=refusal.error,
            model=refusal.model,
            usage=refusal.usage,
            cost_usd=refusal.cost_usd,
            latency_s=refusal.latency_s,
        )

    def note_accepted(self, written: AcceptedDraft) -> None:
        self._notify(
            CompactionEventKind.SUMMARIZED,
            summarizer=written.summarizer,
            model=written.draft.model,
            usage=written.draft.usage,
            cost_usd=written.draft.cost_usd,
            latency_s=written.latency_s,
        )

    def note_boundary(
        self,
        boundary: int,
        written: AcceptedDraft,
        after: ViewStats,
        compacted_blocks: int,
        *,
        pruned: PruningResult | None,
        is_served: bool,
    ) -> None:
        self._so_far = replace(
            self._so_far,
            boundary=boundary,
            summarizer=written.summarizer,
            after=after,
            compacted_blocks=compacted_blocks,
        )
        self._notify(CompactionEventKind.RECORDED)
        if is_served:
            message = compact_boundary(
                self._so_far.session,
                lineage=self._lineage,
                boundary=boundary,
                trigger=self._so_far.trigger,
                pre_tokens=self._before.tokens,
            )
            self._notify(CompactionEventKind.ACTIVATED, message=message)
            if pruned is not None:
                self._notify(CompactionEventKind.CONTEXT_PRUNED, message=context_pruned(pruned))
            self._notify(CompactionEventKind.SESSION_START, source="compact")

    def note_failure(self, reason: str) -> None:
        self._notify(CompactionEventKind.FAILED, reason=reason)

    def _notify(self, moment: CompactionEventKind, **details: Any) -> list[Veto]:
        return notify_listeners(self._listeners, replace(self._so_far, moment=moment, **details))


class CompactionObserver:
    """Entered when a compaction begins, called with each of its events, and left when it ends.

    Listeners only hear of compactions that have a plan, and not always of the end; an observer sees
    each one whole. It never raises. This class ignores everything.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Note the end: by `error`, or with the outcome passed to `finish`."""

    def __call__(self, event: CompactionEvent) -> None:
        """Note an event, before listeners get it."""

    def finish(self, outcome: CompactionOutcome) -> CompactionOutcome:
        return outcome
