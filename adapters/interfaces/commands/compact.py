"""Implements the verbs for boundaries: `compact`, `activate` and `revert`."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from ....domain.compaction_events import Repair, Trigger
from ....domain.compaction_terms import EXPECTED_CALLS
from ....domain.errors import NegativeAnswerError, NotFoundError
from ....domain.hooks import Listener
from ....domain.models import ModelFacts
from ....domain.pricing import Pricing
from ....domain.ranges import Ranges
from ....domain.token_estimate import PromptSizeChange, SizeBasis
from ....projections.history_view import HistoryView
from ...analysis.diffs import number_compactions
from ...models.context_limits import make_overrides
from ...models.model_catalog import look_up_facts
from ...runtime.compaction.event_sink import make_status_listener
from ...runtime.compaction.options import CompactionOptions
from ...runtime.compaction.outcome import CompactionOutcome, Explanation
from ..command_line.options import (
    LINEAGE,
    POLICY_SETTINGS,
    SESSION,
    parse_settings,
    suggest_policies,
)
from ..command_line.printing import (
    format_count,
    format_handles,
    format_shares,
    list_fields,
    pick,
    print_fields,
)
from ..command_line.sessions import name_to_json, open_call_session
from ..command_line.verbs import Answer, Invocation, flag, option

SPINNER_TEXT = "Compacting context..."
PREPARED = "It is prepared: a loop serves it at the threshold, `cutbank activate` now."
SERVED = "`cutbank view` shows what is served, `cutbank recall` shows what left."


def compact(
    call: Invocation,
    session: str = SESSION,
    *,
    policy: str | None = option(
        "--policy NAME[@PRESET]", "See `cutbank policies`.", autocompletion=suggest_policies
    ),
    settings: list[str] | None = POLICY_SETTINGS,
    limit: int | None = option("--limit TOKENS", "What the model's context holds.", min=1),
    instructions: str | None = option("--instructions TEXT", "What the summary should care about."),
    lineage: str = LINEAGE,
    prepare: bool = flag("--prepare", "Record it now; it is served at the threshold."),
    if_due: bool = flag("--if-due", "Only if the policy's threshold is passed."),
    dry_run: bool = flag("--dry-run", "Say what would happen, and record nothing."),
    model: str | None = option(
        "--model NAME", "The agent's model; else the last call's, for prices."
    ),
    calls: int = option(
        "--calls N", "For a dry run: how many calls there will be.", EXPECTED_CALLS, min=0
    ),
) -> Answer:
    """They leave the view and stay in the log, and `cutbank recall` gives them back."""
    with (
        open_call_session(call, session) as found,
        _show_spinner(found.log.context.added_listeners, is_wanted=not call.as_json),
    ):
        outcome = found.compact(
            policy,
            limit=limit,
            model=model,
            options=CompactionOptions(
                settings=parse_settings(settings or []),
                lineage=lineage,
                trigger=Trigger.THRESHOLD if if_due else Trigger.MANUAL,
                instructions=instructions,
                activate=not prepare,
                dry_run=dry_run,
            ),
        )
        known = found.log.settings
        number = outcome.boundary and number_compactions(found, lineage)[outcome.boundary]
    pricing, explanation = None, outcome.explanation
    if dry_run and outcome.pricing:
        name = model or outcome.last_model
        facts = (look_up_facts(name, make_overrides(known)) or ModelFacts(name)) if name else None
        pricing = replace(outcome.pricing, model=facts, expected_calls=calls)
    document = {
        **name_to_json(found),
        **outcome_to_json(outcome, lineage),
        "compaction": number,
        "pricing": pricing and pricing_to_json(pricing),
        "explanation": explanation and explanation_to_json(explanation),
    }
    is_good = outcome.summary is not None
    what = f"compaction {number} on {lineage}" if outcome.compacted else "a dry run"
    heading = f"{found.key}: {what}, by {outcome.policy}"
    fields = [*list_outcome_fields(outcome)] if is_good else []
    fields += list_explanation_fields(explanation) if explanation else ()
    if pricing:
        figures = list_fields(pricing_to_json(pricing))
        fields += [("price", ""), *((f"  {label}", text) for label, text in figures)]
    return Answer(
        document,
        heading if is_good else f"{found.key} was not compacted: {outcome.reason}",
        partial(print_fields, fields),
        *([PREPARED if prepare else SERVED] if outcome.compacted else []),
        is_good=is_good,
    )


def activate(call: Invocation, session: str = SESSION, lineage: str = LINEAGE) -> Answer:
    with open_call_session(call, session) as found:
        before = found.view(lineage=lineage)
        if found.log.find_prepared(lineage=lineage) is None:
            raise NegativeAnswerError(f"nothing is prepared of {found.key!r} on {lineage}")
        boundary = found.activate(lineage=lineage)
        number = number_compactions(found, lineage)[boundary]
        after = found.view(lineage=lineage)
    document = {"boundary": boundary, "compaction": number}
    line = f"compaction {number} of {found.key} is served on {lineage}"
    return _answer_change(document, before, after, line)


def revert(call: Invocation, session: str = SESSION, lineage: str = LINEAGE) -> Answer:
    with open_call_session(call, session) as found:
        before = found.view(lineage=lineage)
        try:
            boundary = found.revert(lineage=lineage)
        except NotFoundError as error:
            # The session and its lineage exist, so the usage was right.
            raise NegativeAnswerError(str(error)) from None
        after = found.view(lineage=lineage)
        number = number_compactions(found, lineage)[boundary]
    document = {"reverted": boundary, "compaction": number}
    document |= pick(after.boundary, "boundary=originator_version")
    line = f"compaction {number} of {found.key} is undone on {lineage}"
    return _answer_change(document, before, after, line)


def _answer_change(
    document: Mapping[str, int | None], before: HistoryView, after: HistoryView, line: str
) -> Answer:
    about = pick(after, "session namespace lineage=coordinate.lineage")
    return Answer(
        {**about, **document, "tokens_before": before.tokens, "tokens": after.tokens},
        line,
        f"view: {before.tokens:,} tokens before, {after.tokens:,} now, estimated",
    )


@contextmanager
def _show_spinner(listeners: list[Listener], *, is_wanted: bool) -> Iterator[None]:
    """Show that a compaction runs, from its request until it is recorded or failed."""
    if not is_wanted:
        yield
        return
    with ExitStack() as shown:

        def show(is_running: bool) -> None:
            shown.close()
            if is_running and not sys.stderr.isatty():
                sys.stderr.write(f"{SPINNER_TEXT}\n")
            elif is_running:
                from rich.console import Console  # noqa: PLC0415 - only a terminal pays for rich

                console = Console(file=sys.stderr, soft_wrap=True)
                shown.enter_context(console.status(SPINNER_TEXT))

        listener = make_status_listener(show)
        listeners.append(listener)
        try:
            yield
        finally:
            listeners.remove(listener)


COST_DIGITS = 6
"""Decimal places of dollars."""


def outcome_to_json(outcome: CompactionOutcome, lineage: str) -> dict[str, Any]:
    return {
        "lineage": lineage,
        **pick(outcome, "compacted reason policy pre_tokens post_tokens request_tokens"),
        "tokens_basis": SizeBasis.ESTIMATED,
        **pick(outcome, "limit limit_source boundary after first_kept left kept split_turn"),
        "repairs": [repair_to_json(repair) for repair in outcome.repairs],
        **pick(outcome, "summary summariser=summarizer rejected"),
    }


def repair_to_json(repair: Repair) -> dict[str, Any]:
    return pick(repair, "rule wanted got stays leaves trimmed")


def pricing_to_json(pricing: Pricing) -> dict[str, Any]:
    """Return a price as `compact --dry-run --json` prints it; unknown values are null."""
    model = pricing.model
    dollars: dict[str, float | None] = pick(
        pricing,
        "saves_per_call_usd=saved_per_call_usd saves_usd=saved_usd"
        " breaks_cache_usd=cache_loss_usd summary_usd net_usd",
    )
    return {
        **pick(model, "model=name provider"),
        **pick(
            pricing,
            "expected_calls saves_tokens=tokens_saved unchanged_tokens=unchanged"
            " cached_tokens=cached breaks_cache_tokens=cache_tokens_lost",
        ),
        **{name: usd if usd is None else round(usd, COST_DIGITS) for name, usd in dollars.items()},
        "pays_after": pricing.break_even_calls,
        "is_worthwhile": pricing.is_worthwhile(),
    }


def explanation_to_json(explanation: Explanation) -> dict[str, Any]:
    due, plan = explanation.due, explanation.plan
    return {
        "trigger": explanation.trigger,
        **pick(due, "fires used=used_tokens limit threshold"),
        "wanted": plan
        and {
            **pick(plan, "cut drops"),
            "trims": Ranges.of(trim.position for trim in plan.trims),
            **pick(plan, "summary_tokens turn_tokens on_failure"),
        },
        "leaves": [asdict(share) for share in explanation.leaves],
        "stays": [asdict(share) for share in explanation.stays],
        "shortened": [
            {"handle": f"#{one.position}", **pick(one, "tokens shown")}
            for one in explanation.shortened
        ],
        "stands_in": "summary" if explanation.writers else "notice" if explanation.leaves else None,
        "writers": explanation.writers,
    }


def list_outcome_fields(outcome: CompactionOutcome) -> Iterator[tuple[str, str]]:
    """Yield the labels and values of a compaction, or of one that a dry run made."""
    sizes = PromptSizeChange(outcome.pre_tokens, outcome.post_tokens, SizeBasis.ESTIMATED)
    yield "prompt", f"{sizes}, {1 - outcome.post_tokens / outcome.pre_tokens:.0%} less"
    if outcome.request_tokens:
        yield "of it", f"{outcome.request_tokens:,} tokens are not in the log: system prompt, tools"
    if outcome.limit and outcome.limit_source:
        yield "limit", f"{outcome.limit:,} tokens ({outcome.limit_source.phrase})"
    yield "why", outcome.reason
    left = f"{format_count(len(outcome.left), 'block')}: {format_handles(outcome.left)}"
    yield "left", left if outcome.left else "nothing; results are shown shortened"
    yield "kept", f"from #{outcome.first_kept} on"
    if outcome.split_turn:
        yield "split", f"turn {outcome.split_turn}: its beginning left, the rest stays"
    yield from (("repair", describe_repair(repair)) for repair in outcome.repairs)
    if outcome.left:
        yield "summary", f"by {outcome.summarizer}"
    yield from (("rejected", complaint) for complaint in outcome.rejected)


def list_explanation_fields(explanation: Explanation) -> Iterator[tuple[str, str]]:
    due, shortened = explanation.due, explanation.shortened
    above = f", threshold {due.threshold:,}" if due.threshold is not None else ""
    in_use = f"{due.used_tokens:,} of {due.limit:,} tokens in use{above}"
    yield "due", f"{'yes' if due.fires else 'no'}: {in_use}"
    yield "leaves", format_shares(explanation.leaves)
    yield "stays", format_shares(explanation.stays)
    if shortened:
        before, after = (
            sum(getattr(one, size) for one in shortened) for size in ("tokens", "shown")
        )
        handles = format_handles(Ranges.of(one.position for one in shortened))
        count = format_count(len(shortened), "result")
        yield "shortened", f"{count}, {before:,} -> {after:,} tokens: {handles}"
    if len(explanation.writers) > 1:
        yield "writers", ", then ".join(explanation.writers)


def describe_repair(repair: Repair) -> str:
    return ", ".join(" ".join(field) for field in list_fields(repair_to_json(repair)))
