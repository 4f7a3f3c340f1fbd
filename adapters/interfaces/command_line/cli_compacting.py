"""Implements the verbs for boundaries: `compact`, `activate` and `revert`."""

from typing import Annotated, Any

import typer

from ....domain.compaction import MAIN_LINEAGE
from ....domain.compaction_events import Trigger
from ....domain.errors import NotFoundError
from ....domain.pricing import describe_pricing
from ....domain.token_estimate import PromptSizeChange, SizeBasis
from ...analysis.auditing.diffs import find_compaction_number
from ...models.context_limits import make_overrides
from ...runtime.compaction.options import CompactionOptions
from ...runtime.compaction.outcome import CompactionOutcome
from .compaction_price import price_outcome, pricing_to_json
from .compaction_spinner import show_compaction_spinner
from .database import open_call_session
from .explanation_lines import describe_repair, explanation_lines, explanation_to_json
from .invocation import Invocation, NegativeAnswerError
from .printing import format_count, format_handles, list_handle_ranges, print_json, print_text
from .set_option import parse_settings
from .shared_options import LineageOption, SessionArgument
from .suggestions import suggest_policies, suggest_settings


def compact(
    call: Invocation,
    session: SessionArgument,
    *,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="NAME[@PRESET]",
            help="See `cutbank policies`.",
            autocompletion=suggest_policies,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="One of the policy's settings.",
            autocompletion=suggest_settings,
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", metavar="TOKENS", min=1, help="What the model's context holds."),
    ] = None,
    instructions: Annotated[
        str | None,
        typer.Option("--instructions", metavar="TEXT", help="What the summary should care about."),
    ] = None,
    lineage: LineageOption = MAIN_LINEAGE,
    prepare: Annotated[
        bool, typer.Option("--prepare", help="Record it now; it is served at the threshold.")
    ] = False,
    if_due: Annotated[
        bool, typer.Option("--if-due", help="Only if the policy's threshold is passed.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would happen, and record nothing.")
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", metavar="NAME", help="The agent's model; else the last call's, for prices."
        ),
    ] = None,
    calls: Annotated[
        int | None,
        typer.Option(
            "--calls", metavar="N", min=0, help="For a dry run: how many calls there will be."
        ),
    ] = None,
) -> None:
    """Compact now: a summary takes the place of old blocks.

    They leave the view and stay in the log, and `cutbank recall` gives them back.
    """
    with (
        open_call_session(call, session) as found,
        show_compaction_spinner(found.log.context.added_listeners, is_wanted=not call.as_json),
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
        count = outcome.boundary and find_compaction_number(found, outcome.boundary, lineage)
    pricing = None
    if dry_run:
        expected = known.compaction.expected_calls if calls is None else calls
        pricing = price_outcome(outcome, model, expected, make_overrides(known))
    if call.as_json:
        answer = {**outcome_to_json(outcome, lineage), "compaction": count}
        answer |= {"pricing": pricing and pricing_to_json(pricing)}
        answer["explanation"] = outcome.explanation and explanation_to_json(outcome.explanation)
        print_json({"session": found.key, "namespace": call.namespace, **answer})
    else:
        _print_outcome(found.key, lineage, outcome, count, is_served=not prepare)
        for line in explanation_lines(outcome.explanation) if outcome.explanation else ():
            print_text(line)
        for number, line in enumerate(describe_pricing(pricing) if pricing else ()):
            print_text(f"{'' if number else 'price':<8} {line}")
    if outcome.summary is None:
        raise typer.Exit(1)


def activate(
    call: Invocation, session: SessionArgument, lineage: LineageOption = MAIN_LINEAGE
) -> None:
    """Serve the boundary that was prepared."""
    with open_call_session(call, session) as found:
        before = found.view(lineage=lineage)
        if found.log.find_prepared(lineage=lineage) is None:
            raise NegativeAnswerError(f"nothing is prepared of {found.key!r} on {lineage}")
        boundary = found.activate(lineage=lineage)
        count = find_compaction_number(found, boundary, lineage)
        after = found.view(lineage=lineage)
    if call.as_json:
        print_json(
            {
                "session": found.key,
                "namespace": call.namespace,
                "lineage": lineage,
                "boundary": boundary,
                "compaction": count,
                "tokens_before": before.tokens,
                "tokens": after.tokens,
            }
        )
    else:
        print_text(f"compaction {count} of {found.key} is served on {lineage}")
        print_text(f"view: {before.tokens:,} tokens before, {after.tokens:,} now, estimated")


def revert(
    call: Invocation, session: SessionArgument, lineage: LineageOption = MAIN_LINEAGE
) -> None:
    """Undo the newest compaction. What left is in the view again."""
    with open_call_session(call, session) as found:
        before = found.view(lineage=lineage)
        try:
            boundary = found.revert(lineage=lineage)
        except NotFoundError as error:
            # The session and its lineage exist, so the usage was right.
            raise NegativeAnswerError(str(error)) from None
        after = found.view(lineage=lineage)
        count = find_compaction_number(found, boundary, lineage)
    if call.as_json:
        print_json(
            {
                "session": found.key,
                "namespace": call.namespace,
                "lineage": lineage,
                "reverted": boundary,
                "compaction": count,
                "boundary": after.boundary.originator_version if after.boundary else None,
                "tokens_before": before.tokens,
                "tokens": after.tokens,
            }
        )
    else:
        print_text(f"compaction {count} of {found.key} is undone on {lineage}")
        print_text(f"view: {before.tokens:,} tokens before, {after.tokens:,} now, estimated")


def outcome_to_json(outcome: CompactionOutcome, lineage: str) -> dict[str, Any]:
    """Return an outcome as `compact --json` and `demo --json` print it."""
    return {
        "lineage": lineage,
        "compacted": outcome.compacted,
        "reason": outcome.reason,
        "policy": outcome.policy,
        "pre_tokens": outcome.pre_tokens,
        "post_tokens": outcome.post_tokens,
        "tokens_basis": SizeBasis.ESTIMATED,
        "limit": outcome.limit,
        "limit_source": outcome.limit_source,
        "boundary": outcome.boundary,
        "after": outcome.after,
        "first_kept": outcome.first_kept,
        "left": list_handle_ranges(outcome.left),
        "kept": list_handle_ranges(outcome.kept),
        "split_turn": outcome.split_turn,
        "repairs": [
            {
                "rule": repair.rule,
                "wanted": repair.wanted,
                "got": repair.got,
                "stays": list_handle_ranges(repair.stays),
                "leaves": list_handle_ranges(repair.leaves),
                "trimmed": list_handle_ranges(repair.trimmed),
            }
            for repair in outcome.repairs
        ],
        "summary": outcome.summary,
        "summariser": outcome.summarizer,
        "rejected": list(outcome.rejected),
    }


def _print_outcome(
    session: str, lineage: str, outcome: CompactionOutcome, count: int | None, *, is_served: bool
) -> None:
    if outcome.summary is None:
        print_text(f"{session} was not compacted: {outcome.reason}")
        return
    saved = 1 - outcome.post_tokens / outcome.pre_tokens
    said = f"compaction {count} on {lineage}" if outcome.compacted else "a dry run"
    print_text(f"{session}: {said}, by {outcome.policy}", bold=True)
    sizes = PromptSizeChange(outcome.pre_tokens, outcome.post_tokens, SizeBasis.ESTIMATED)
    print_text(f"view     {sizes}, {saved:.0%} less")
    if outcome.limit and outcome.limit_source:
        print_text(f"limit    {outcome.limit:,} tokens ({outcome.limit_source.phrase})")
    print_text(f"why      {outcome.reason}")
    left = f"{format_count(len(outcome.left), 'block')}: {format_handles(outcome.left)}"
    print_text(f"left     {left if outcome.left else 'nothing; results are shown shortened'}")
    print_text(f"kept     from #{outcome.first_kept} on")
    if outcome.split_turn:
        print_text(f"split    turn {outcome.split_turn}: its beginning left, the rest stays")
    for repair in outcome.repairs:
        print_text(f"repair   {describe_repair(repair)}")
    if outcome.left:
        print_text(f"summary  by {outcome.summarizer}")
    for complaint in outcome.rejected:
        print_text(f"         it stood in for another: {complaint}")
    if outcome.compacted and not is_served:
        print_text(
            "It is prepared: an agent's loop serves it at the threshold, `cutbank activate` now."
        )
    elif outcome.compacted:
        print_text("`cutbank view` shows what is served, `cutbank recall` gives back what left.")
