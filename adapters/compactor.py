"""One compaction from end to end: window, plan, repair, summary, gate, record."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Any

from eventsourcing.persistence import IntegrityError

from ..domain.blocks import Kind
from ..domain.compaction import Compaction, lineage_id
from ..domain.compaction_events import CompactBoundary, Digest, Trigger
from ..domain.coverage import Settlement, nothing_to_gain, settle
from ..domain.digest import digest_of
from ..domain.errors import NothingToCompactError, RejectedSummaryError, StalePlanError
from ..domain.policies.policy import Policy
from ..domain.ranges import Ranges
from ..domain.session_events import BlockAppended
from ..domain.summaries.extractive import Extractive
from ..domain.summaries.gate import check
from ..domain.summaries.listing import Listing
from ..domain.summaries.summariser import Draft, Material, Summariser
from ..domain.token_budget import estimate_text
from ..domain.window import Plan, Window
from ..projections.compaction_window import window_of
from ..projections.history_view import Entry, History
from .compaction_outcome import Outcome
from .event_store import EventStore
from .recorder import AppendKey
from .view_reader import ViewReader

DEFAULT_LIMIT = 200_000
"""Tokens of context where nobody says how much the model holds."""
REPLANS = 3
"""How often a plan that was overtaken is made anew before the conflict is the caller's."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    history: History
    window: Window
    plan: Plan
    settlement: Settlement
    draft: Draft
    summariser: str
    rejected: tuple[str, ...]
    planned_on: int
    post_tokens: int


class Compactor:
    """Compacts one session on one lineage; never holds a transaction while a summary is written."""

    def __init__(self, store: EventStore, reader: ViewReader) -> None:
        self.store = store
        self.reader = reader

    def compact(
        self,
        policy: Policy,
        *,
        limit: int = DEFAULT_LIMIT,
        trigger: Trigger = Trigger.MANUAL,
        instructions: str | None = None,
        idempotency_key: str | None = None,
        summariser: Summariser | None = None,
        activate: bool = True,
        dry_run: bool = False,
    ) -> Outcome:
        """Compact if the policy says so.

        `limit` is the model's context in tokens. A repeated `idempotency_key` answers with the
        first boundary. Raises NothingToCompactError where the view would not become smaller.
        """
        for attempt in range(REPLANS):
            if idempotency_key and (done := self._done(idempotency_key)):
                return done
            prepared = self._prepare(policy, limit, trigger, instructions, summariser)
            if isinstance(prepared, Outcome):
                return prepared
            if dry_run:
                return _outcome(policy, prepared, None)
            try:
                boundary = self._record(
                    policy, prepared, trigger, instructions, idempotency_key, activate=activate
                )
            except StalePlanError:
                if attempt == REPLANS - 1:
                    raise
                continue
            return _outcome(policy, prepared, boundary)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def activate(self) -> int:
        """Serve the boundary that was prepared last."""
        with self._deciding():
            compaction = self._own_lineage()
            boundary = compaction.state.prepared
            compaction.activate(boundary, self._head())
            self._save(compaction)
            return boundary

    def revert(self) -> int:
        """Serve again what the active boundary builds upon; returns the reverted boundary."""
        with self._deciding():
            compaction = self._own_lineage()
            beneath = compaction.state.beneath
            below = self.reader.boundary(beneath)[0].previous if beneath else None
            reverted = compaction.revert(self._head(), beneath=below or 0)
            self._save(compaction)
            return reverted

    def window(self, limit: int, trigger: Trigger) -> tuple[History, Window, int]:
        """What a policy would be shown now, and the decision that a plan would be made on."""
        reader = self.reader
        chain = self.store.lineage_chain(reader.namespace, reader.key, reader.lineage)
        planned_on = self.store.lineage_state(chain)[1].decided
        with reader.advancing:
            history, coordinate = reader.history()
            view = history.view(reader.key, reader.namespace, coordinate, None)
            recalled = self._recalled(history)
            return history, window_of(history, view, limit, trigger, recalled), planned_on

    def _prepare(
        self,
        policy: Policy,
        limit: int,
        trigger: Trigger,
        instructions: str | None,
        summariser: Summariser | None,
    ) -> _Prepared | Outcome:
        history, window, planned_on = self.window(limit, trigger)
        plan = policy.plan(window)
        if plan is None:
            return Outcome(
                compacted=False,
                reason=f"{policy.name} sees no need: {window.used:,} of {limit:,} tokens in use",
                policy=policy.name,
                pre_tokens=window.tokens,
                post_tokens=window.tokens,
            )
        settlement = settle(window, plan)
        material = _material(window, plan, settlement, instructions)
        draft, name, rejected = self._draft(material, summariser)
        standing = window.summary.tokens if window.summary else 0
        post_tokens = (
            window.overhead - standing + estimate_text(draft.text) + settlement.kept_tokens
        )
        if post_tokens >= window.tokens:
            raise NothingToCompactError(nothing_to_gain(window))
        return _Prepared(
            history, window, plan, settlement, draft, name, rejected, planned_on, post_tokens
        )

    def _draft(
        self, material: Material, asked: Summariser | None
    ) -> tuple[Draft, str, tuple[str, ...]]:
        """The first draft that passes the gate, who wrote it, and why others' were not taken.

        The chain ends in a listing, which cannot fail.
        """
        complaints: list[str] = []
        for summariser in (asked, Extractive()):
            if summariser is None:
                continue
            try:
                draft = summariser.summarise(material)
                check(draft, material, user_texts=self._user_texts(draft, material))
            except RejectedSummaryError as error:
                complaints.append(f"{summariser.name}: {error}")
            except Exception as error:  # noqa: BLE001 - users' summarisers may raise anything
                complaints.append(f"{summariser.name} failed: {error}")
            else:
                return draft, summariser.name, tuple(complaints)
        last = Listing()
        return last.summarise(material), last.name, tuple(complaints)

    def _user_texts(self, draft: Draft, material: Material) -> list[str]:
        """What users really said of what the draft may quote: all that leaves, and all it cites."""
        chain = self.store.session_chain(self.reader.namespace, self.reader.key)
        leaving = {
            item.position: item.block.text for item in material.gone if item.kind is Kind.USER
        }
        for recorded in self.store.read(chain, draft.cites):
            event = recorded.event
            if isinstance(event, BlockAppended) and event.block.kind is Kind.USER:
                leaving[recorded.position] = event.block.text
        return list(leaving.values())

    def _record(
        self,
        policy: Policy,
        prepared: _Prepared,
        trigger: Trigger,
        instructions: str | None,
        idempotency_key: str | None,
        *,
        activate: bool,
    ) -> int:
        settlement, draft = prepared.settlement, prepared.draft
        previous = prepared.history.boundary
        with self._deciding():
            compaction = self._own_lineage()
            if prepared.planned_on != compaction.state.decided:
                raise StalePlanError("another boundary was decided while this one was planned")
            compaction.request(
                trigger=trigger,
                policy=policy.name,
                settings=asdict(policy),
                after=settlement.after,
                instructions=instructions,
                idempotency_key=idempotency_key,
            )
            if prepared.rejected:
                compaction.fail(
                    reason="no draft of those that were tried was fit to serve",
                    tried=prepared.rejected,
                    stood_in=prepared.summariser,
                )
            boundary = compaction.draw(
                {
                    "after": settlement.after,
                    "first_kept": settlement.first_kept,
                    "kept": settlement.kept,
                    "pinned": settlement.pinned,
                    "hidden": settlement.hidden,
                    "trims": settlement.trims,
                    "replacements": settlement.replacements,
                    "split_turn": settlement.split_turn,
                    "trigger": trigger,
                    "policy": policy.name,
                    "pre_tokens": prepared.window.tokens,
                    "post_tokens": prepared.post_tokens,
                    "repairs": settlement.repairs,
                    "previous": previous.originator_version if previous else None,
                },
                {
                    "text": draft.text,
                    "sections": draft.sections,
                    "digest": _digest(prepared.window, settlement),
                    "covers": settlement.covers,
                    "cites": draft.cites,
                    "summariser": prepared.summariser,
                    "model": draft.model,
                    "usage": draft.usage,
                    "cost_usd": draft.cost_usd,
                    "tokens": estimate_text(draft.text),
                },
                planned_on=prepared.planned_on,
                activate_at=self._head() if activate else None,
            )
            keys = []
            if idempotency_key:
                keys = [AppendKey(compaction.id, idempotency_key, boundary, boundary)]
            self._save(compaction, keys=keys)
            return boundary

    def _save(self, compaction: Compaction, keys: Sequence[AppendKey] = ()) -> None:
        try:
            self.store.save(compaction, keys=keys)
        except IntegrityError as error:
            raise StalePlanError("another process decided a boundary at the same time") from error

    def _deciding(self) -> AbstractContextManager[Any]:
        reader = self.reader
        return self.store.deciding_on(lineage_id(reader.namespace, reader.key, reader.lineage))

    def _own_lineage(self) -> Compaction:
        reader = self.reader
        # Another process may have written to it: what is decided here is decided on what is stored.
        self.store.refresh(lineage_id(reader.namespace, reader.key, reader.lineage))
        return self.store.opened_compaction(reader.namespace, reader.key, reader.lineage)

    def _head(self) -> int:
        chain = self.store.session_chain(self.reader.namespace, self.reader.key)
        return self.store.head(chain)[0]

    def _done(self, idempotency_key: str) -> Outcome | None:
        reader = self.reader
        id = lineage_id(reader.namespace, reader.key, reader.lineage)
        done = self.store.select_key(id, idempotency_key)
        if done is None:
            return None
        boundary, summary, _ = reader.boundary(done.first)
        return Outcome(
            compacted=True,
            reason="done before under the same key",
            policy=boundary.policy,
            pre_tokens=boundary.pre_tokens,
            post_tokens=boundary.post_tokens,
            boundary=done.first,
            after=boundary.after,
            first_kept=boundary.first_kept,
            left=_left(boundary, summary.covers if summary else Ranges()),
            kept=boundary.kept,
            repairs=boundary.repairs,
            split_turn=boundary.split_turn.turn if boundary.split_turn else None,
            summary=summary.text if summary else None,
            summariser=summary.summariser if summary else None,
        )

    def _recalled(self, history: History) -> list[Entry]:
        """Blocks that earlier boundaries took out and that were pinned since."""
        if history.boundary is None:
            return []
        decided = Ranges.span(1, history.boundary.after)
        missing = (history.pinned & decided) - Ranges.of(history.entries)
        if not missing:
            return []
        missing -= self.reader.retracted(self._head())
        chain = self.store.session_chain(self.reader.namespace, self.reader.key)
        pinned = History().apply_all(self.store.read(chain, missing))
        return list(pinned.entries.values())


def _material(
    window: Window, plan: Plan, settlement: Settlement, instructions: str | None
) -> Material:
    return Material(
        gone=settlement.gone,
        covers=settlement.covers,
        budget=plan.summary_tokens,
        prefix=settlement.split_turn.prefix if settlement.split_turn else Ranges(),
        previous=window.summary.text if window.summary else None,
        previous_sections=window.summary.sections if window.summary else {},
        digest=_digest(window, settlement),
        instructions=instructions,
    )


def _digest(window: Window, settlement: Settlement) -> Digest:
    return digest_of(settlement.gone, window.summary.digest if window.summary else Digest())


def _left(boundary: CompactBoundary, covers: Ranges) -> Ranges:
    return covers - boundary.kept


def _outcome(policy: Policy, prepared: _Prepared, boundary: int | None) -> Outcome:
    settlement = prepared.settlement
    return Outcome(
        compacted=boundary is not None,
        reason=prepared.plan.reason,
        policy=policy.name,
        pre_tokens=prepared.window.tokens,
        post_tokens=prepared.post_tokens,
        boundary=boundary,
        after=settlement.after,
        first_kept=settlement.first_kept,
        left=Ranges.of(item.position for item in settlement.gone),
        kept=settlement.kept,
        repairs=settlement.repairs,
        split_turn=settlement.split_turn.turn if settlement.split_turn else None,
        summary=prepared.draft.text,
        summariser=prepared.summariser,
        rejected=prepared.rejected,
    )
