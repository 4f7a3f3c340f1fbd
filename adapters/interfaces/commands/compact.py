"""Implements the verbs for boundaries: `compact`, `activate` and `revert`."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import typer

from ....domain.compaction_events import Trigger
from ....domain.compaction_terms import EXPECTED_CALLS
from ....domain.errors import NotFoundError
from ....domain.hooks import Listener
from ....domain.models import ModelFacts, ModelOverride
from ....domain.pricing import Pricing, describe_pricing
from ....projections.history_view import HistoryView
from ...analysis.auditing.diffs import find_compaction_number
from ...models.context_limits import make_overrides
from ...models.model_catalog import look_up_facts
from ...runtime.compaction.event_sink import make_status_listener
from ...runtime.compaction.options import CompactionOptions
from ...runtime.compaction.outcome import CompactionOutcome
from ..command_line.completion import suggest_policies
from ..command_line.options import LINEAGE, POLICY_SETTINGS, SESSION, parse_settings
from ..command_line.outcomes import (
    explanation_to_json,
    list_explanation_fields,
    list_outcome_fields,
    outcome_to_json,
    pricing_to_json,
)
from ..command_line.printing import pick, print_answer, print_fields, print_json, print_text
from ..command_line.sessions import name_to_json, open_call_session
from ..command_line.verbs import Invocation, NegativeAnswerError, flag, option

SPINNER_TEXT = "Compacting context..."


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
    calls: int | None = option("--calls N", "For a dry run: how many calls there will be.", min=0),
) -> None:
    """Compact now: a summary takes the place of old blocks.

    They leave the view and stay in the log, and `cutbank recall` gives them back.
    """
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
        number = outcome.boundary and find_compaction_number(found, outcome.boundary, lineage)
    pricing = None
    if dry_run:
        expected = EXPECTED_CALLS if calls is None else calls
        pricing = _price_outcome(outcome, model, expected, make_overrides(known))
    explanation = outcome.explanation
    if call.as_json:
        print_json(
            {
                **name_to_json(found),
                **outcome_to_json(outcome, lineage),
                "compaction": number,
                "pricing": pricing and pricing_to_json(pricing),
                "explanation": explanation and explanation_to_json(explanation),
            }
        )
    else:
        fields: list[tuple[str, str]] = []
        if outcome.summary is None:
            print_text(f"{found.key} was not compacted: {outcome.reason}")
        else:
            what = f"compaction {number} on {lineage}" if outcome.compacted else "a dry run"
            print_text(f"{found.key}: {what}, by {outcome.policy}", bold=True)
            fields += list_outcome_fields(outcome)
        fields += list_explanation_fields(explanation) if explanation else ()
        fields += (("price", line) for line in (describe_pricing(pricing) if pricing else ()))
        print_fields(fields)
        if outcome.compacted and prepare:
            print_text("It is prepared: a loop serves it at the threshold, `cutbank activate` now.")
        elif outcome.compacted:
            print_text("`cutbank view` shows what is served, `cutbank recall` shows what left.")
    if outcome.summary is None:
        raise typer.Exit(1)


def activate(call: Invocation, session: str = SESSION, lineage: str = LINEAGE) -> None:
    """Serve the boundary that was prepared."""
    with open_call_session(call, session) as found:
        before = found.view(lineage=lineage)
        if found.log.find_prepared(lineage=lineage) is None:
            raise NegativeAnswerError(f"nothing is prepared of {found.key!r} on {lineage}")
        boundary = found.activate(lineage=lineage)
        number = find_compaction_number(found, boundary, lineage)
        after = found.view(lineage=lineage)
    document = {"boundary": boundary, "compaction": number}
    line = f"compaction {number} of {found.key} is served on {lineage}"
    _print_change(call, document, before, after, line)


def revert(call: Invocation, session: str = SESSION, lineage: str = LINEAGE) -> None:
    """Undo the newest compaction. What left is in the view again."""
    with open_call_session(call, session) as found:
        before = found.view(lineage=lineage)
        try:
            boundary = found.revert(lineage=lineage)
        except NotFoundError as error:
            # The session and its lineage exist, so the usage was right.
            raise NegativeAnswerError(str(error)) from None
        after = found.view(lineage=lineage)
        number = find_compaction_number(found, boundary, lineage)
    now = after.boundary.originator_version if after.boundary else None
    document = {"reverted": boundary, "compaction": number, "boundary": now}
    line = f"compaction {number} of {found.key} is undone on {lineage}"
    _print_change(call, document, before, after, line)


def _print_change(
    call: Invocation,
    document: Mapping[str, int | None],
    before: HistoryView,
    after: HistoryView,
    line: str,
) -> None:
    about = pick(after, "session namespace") | {"lineage": after.coordinate.lineage}
    print_answer(
        call.as_json,
        {**about, **document, "tokens_before": before.tokens, "tokens": after.tokens},
        line,
        f"view: {before.tokens:,} tokens before, {after.tokens:,} now, estimated",
    )


def _price_outcome(
    outcome: CompactionOutcome,
    model: str | None,
    calls: int,
    overrides: Mapping[str, ModelOverride],
) -> Pricing | None:
    """Return the price for the named or last model; None if nothing would be compacted."""
    if outcome.pricing is None:
        return None
    facts = None
    if name := model or outcome.last_model:
        facts = look_up_facts(name, overrides) or ModelFacts(name)
    return replace(outcome.pricing, model=facts, expected_calls=calls)


@contextmanager
def _show_spinner(listeners: list[Listener], *, is_wanted: bool) -> Iterator[None]:
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
