"""Tells those who listen what becomes of one compaction, and hears what they ask for."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ....domain.compaction import lineage_id
from ....domain.hooks import Happening, Listener, Moment, Stats, Verdict
from ....domain.utilisation import Pruned
from ....projections.hook_payloads import compact_boundary, context_pruned
from ....projections.planned import Planned
from ...storage.view_reader import ViewReader
from .listeners import told
from .order import Order
from .summary_chain import NoListener, Refusal, Written


class CompactionStory(NoListener):
    """The moments of one compaction, as they come."""

    def __init__(
        self, listeners: Sequence[Listener], reader: ViewReader, order: Order, planned: Planned
    ) -> None:
        self._listeners = listeners
        self._lineage = lineage_id(reader.namespace, reader.key, reader.lineage)
        window = planned.window
        summaries = int(window.summary is not None)
        self._before = Stats(window.tokens, len(window.items), summaries)
        self._so_far = Happening(
            moment=Moment.PRE_COMPACT,
            session=reader.key,
            namespace=reader.namespace,
            lineage=reader.lineage,
            trigger=order.trigger,
            policy=order.policy.name,
            before=self._before,
            compacted_blocks=len(planned.settlement.gone),
            instructions=order.instructions,
        )

    def asked(self) -> Verdict:
        """All instructions together, and the first veto."""
        wishes, veto = [self._so_far.instructions], None
        for verdict in self._tell(Moment.PRE_COMPACT):
            wishes.append(verdict.instructions)
            veto = veto if veto is not None else verdict.veto
        together = "\n".join(wish for wish in wishes if wish) or None
        self._so_far = replace(self._so_far, instructions=together)
        if veto is not None:
            self._tell(Moment.REJECTED, reason=f"vetoed: {veto}")
        return Verdict(instructions=together, veto=veto)

    def requested(self) -> None:
        self._tell(Moment.REQUESTED)

    def begins(self, summariser: str) -> None:
        self._tell(Moment.SUMMARISING, summariser=summariser)

    def refused(self, refusal: Refusal) -> None:
        self._tell(
            Moment.REJECTED,
            summariser=refusal.summariser,
            reason=str(refusal),
            rule=refusal.rule,
            error=refusal.error,
            model=refusal.model,
            usage=refusal.usage,
            cost_usd=refusal.cost_usd,
            latency_s=refusal.latency_s,
        )

    def passed(self, written: Written) -> None:
        self._tell(
            Moment.SUMMARISED,
            summariser=written.summariser,
            model=written.draft.model,
            usage=written.draft.usage,
            cost_usd=written.draft.cost_usd,
            latency_s=written.latency_s,
        )

    def recorded(
        self,
        boundary: int,
        written: Written,
        after: Stats,
        compacted_blocks: int,
        *,
        pruned: Pruned | None,
        is_served: bool,
    ) -> None:
        self._so_far = replace(
            self._so_far,
            boundary=boundary,
            summariser=written.summariser,
            after=after,
            compacted_blocks=compacted_blocks,
        )
        self._tell(Moment.RECORDED)
        if is_served:
            message = compact_boundary(
                self._so_far.session,
                lineage=self._lineage,
                boundary=boundary,
                trigger=self._so_far.trigger,
                pre_tokens=self._before.tokens,
            )
            self._tell(Moment.ACTIVATED, message=message)
            if pruned is not None:
                self._tell(Moment.CONTEXT_PRUNED, message=context_pruned(pruned))
            self._tell(Moment.SESSION_START, source="compact")

    def failed(self, reason: str) -> None:
        self._tell(Moment.FAILED, reason=reason)

    def _tell(self, moment: Moment, **details: Any) -> list[Verdict]:
        return told(self._listeners, replace(self._so_far, moment=moment, **details))
