"""The verbs about boundaries: draw one, serve it, and undo it."""

from typing import Annotated, Any

import typer

from ....domain.compaction import MAIN
from ....domain.compaction_events import Trigger
from ....domain.counting.sizes import Basis, Sizes
from ....domain.errors import NotFoundError
from ....domain.pricing_in_words import in_words
from ...analysis.auditing.diffs import count_of
from ...models.context_limits import overrides_by
from ...runtime.compaction.options import CompactionOptions
from ...runtime.compaction.outcome import Outcome
from .compacting_notice import compacting_notice
from .compaction_price import priced, pricing_as_json
from .completing import policy_names, policy_settings
from .database import opened_session
from .explained import explanation_as_json, in_lines, repair_in_words
from .invocation import AnswerIsNoError, Invocation
from .printing import counted, runs, say, say_json, shortly
from .set_words import settings_of
from .words import Lineage, SessionName


def compact(
    call: Invocation,
    session: SessionName,
    *,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="NAME[@PRESET]",
            help="See `cutbank policies`.",
            autocompletion=policy_names,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="One of the policy's settings.",
            autocompletion=policy_settings,
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
    lineage: Lineage = MAIN,
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
        opened_session(call, session) as found,
        compacting_notice(found.log.context.added_listeners, is_wanted=not call.as_json),
    ):
        outcome = found.compact(
            policy,
            limit=limit,
            model=model,
            options=CompactionOptions(
                settings=settings_of(settings or []),
                lineage=lineage,
                trigger=Trigger.THRESHOLD if if_due else Trigger.MANUAL,
                instructions=instructions,
                activate=not prepare,
                dry_run=dry_run,
            ),
        )
        known = found.log.settings
        count = outcome.boundary and count_of(found, outcome.boundary, lineage)
    pricing = None
    if dry_run:
        expected = known.compaction.expected_calls if calls is None else calls
        pricing = priced(outcome, model, expected, overrides_by(known))
    if call.as_json:
        answer = {**as_json(outcome, lineage), "compaction": count}
        answer |= {"pricing": pricing and pricing_as_json(pricing)}
        answer["explanation"] = outcome.explanation and explanation_as_json(outcome.explanation)
        say_json({"session": found.key, "namespace": call.namespace, **answer})
    else:
        _say_outcome(found.key, lineage, outcome, count, is_served=not prepare)
        for line in in_lines(outcome.explanation) if outcome.explanation else ():
            say(line)
        for number, line in enumerate(in_words(pricing) if pricing else ()):
            say(f"{'' if number else 'price':<8} {line}")
    if outcome.summary is None:
        raise typer.Exit(1)


def activate(call: Invocation, session: SessionName, lineage: Lineage = MAIN) -> None:
    """Serve the boundary that was prepared."""
    with opened_session(call, session) as found:
        before = found.view(lineage=lineage)
        if found.log.find_prepared(lineage=lineage) is None:
            raise AnswerIsNoError(f"nothing is prepared of {found.key!r} on {lineage}")
        boundary = found.activate(lineage=lineage)
        count = count_of(found, boundary, lineage)
        after = found.view(lineage=lineage)
    if call.as_json:
        say_json(
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
        say(f"compaction {count} of {found.key} is served on {lineage}")
        say(f"view: {before.tokens:,} tokens before, {after.tokens:,} now, estimated")


def revert(call: Invocation, session: SessionName, lineage: Lineage = MAIN) -> None:
    """Undo the newest compaction. What left is in the view again."""
    with opened_session(call, session) as found:
        before = found.view(lineage=lineage)
        try:
            boundary = found.revert(lineage=lineage)
        except NotFoundError as error:
            # The session and its lineage were found: what was asked was right.
            raise AnswerIsNoError(str(error)) from None
        after = found.view(lineage=lineage)
        count = count_of(found, boundary, lineage)
    if call.as_json:
        say_json(
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
        say(f"compaction {count} of {found.key} is undone on {lineage}")
        say(f"view: {before.tokens:,} tokens before, {after.tokens:,} now, estimated")


def as_json(outcome: Outcome, lineage: str) -> dict[str, Any]:
    """An outcome as `compact --json` and `demo --json` say it."""
    return {
        "lineage": lineage,
        "compacted": outcome.compacted,
        "reason": outcome.reason,
        "policy": outcome.policy,
        "pre_tokens": outcome.pre_tokens,
        "post_tokens": outcome.post_tokens,
        "tokens_basis": Basis.ESTIMATED,
        "limit": outcome.limit,
        "limit_source": outcome.limit_source,
        "boundary": outcome.boundary,
        "after": outcome.after,
        "first_kept": outcome.first_kept,
        "left": runs(outcome.left),
        "kept": runs(outcome.kept),
        "split_turn": outcome.split_turn,
        "repairs": [
            {
                "rule": repair.rule,
                "wanted": repair.wanted,
                "got": repair.got,
                "stays": runs(repair.stays),
                "leaves": runs(repair.leaves),
                "trimmed": runs(repair.trimmed),
            }
            for repair in outcome.repairs
        ],
        "summary": outcome.summary,
        "summariser": outcome.summariser,
        "rejected": list(outcome.rejected),
    }


def _say_outcome(
    session: str, lineage: str, outcome: Outcome, count: int | None, *, is_served: bool
) -> None:
    if outcome.summary is None:
        say(f"{session} was not compacted: {outcome.reason}")
        return
    saved = 1 - outcome.post_tokens / outcome.pre_tokens
    said = f"compaction {count} on {lineage}" if outcome.compacted else "a dry run"
    say(f"{session}: {said}, by {outcome.policy}", bold=True)
    sizes = Sizes(outcome.pre_tokens, outcome.post_tokens, Basis.ESTIMATED)
    say(f"view     {sizes}, {saved:.0%} less")
    if outcome.limit and outcome.limit_source:
        say(f"limit    {outcome.limit:,} tokens ({outcome.limit_source.phrase})")
    say(f"why      {outcome.reason}")
    left = f"{counted(len(outcome.left), 'block')}: {shortly(outcome.left)}"
    say(f"left     {left if outcome.left else 'nothing; results are shown shortened'}")
    say(f"kept     from #{outcome.first_kept} on")
    if outcome.split_turn:
        say(f"split    turn {outcome.split_turn}: its beginning left, the rest stays")
    for repair in outcome.repairs:
        say(f"repair   {repair_in_words(repair)}")
    if outcome.left:
        say(f"summary  by {outcome.summariser}")
    for complaint in outcome.rejected:
        say(f"         it stood in for another: {complaint}")
    if outcome.compacted and not is_served:
        say("It is prepared: an agent's loop serves it at the threshold, `cutbank activate` now.")
    elif outcome.compacted:
        say("`cutbank view` shows what is served, `cutbank recall` gives back what left.")
