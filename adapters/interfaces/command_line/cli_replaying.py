"""Implements `replay`: replays a recorded session under another policy."""

from pathlib import Path
from typing import Annotated

import typer

from ...analysis.replaying import run_replay
from ...analysis.replaying.deciders import REPLAY_SUMMARIZERS
from .database import open_call_session
from .invocation import Invocation
from .printing import print_json, print_note
from .progress_bar import show_progress
from .replay_lines import print_replay, replay_to_json
from .set_option import parse_settings
from .shared_options import SessionArgument
from .suggestions import suggest_policies, suggest_settings


def replay(
    call: Invocation,
    session: SessionArgument,
    *,
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            metavar="NAME[@PRESET]",
            help="See `cutbank policies`; none never compacts, recorded does as was done.",
            autocompletion=suggest_policies,
        ),
    ],
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
        typer.Option(
            "--limit",
            metavar="TOKENS",
            min=1,
            help="What a prompt may have; else as the settings, the log or the model say.",
        ),
    ] = None,
    summarizer: Annotated[
        str,
        typer.Option(
            "--summarizer",
            metavar="NAME",
            help=f"Who writes summaries: {', '.join(REPLAY_SUMMARIZERS)}.",
        ),
    ] = "extractive",
    budget: Annotated[
        int | None,
        typer.Option("--budget", metavar="TOKENS", min=1, help="What each summary may take."),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="The agent's model, for prices.")
    ] = None,
    lineage: Annotated[
        str | None,
        typer.Option("--lineage", metavar="NAME", help="Store the decisions as a new lineage."),
    ] = None,
    dump_views: Annotated[
        Path | None,
        typer.Option("--dump-views", metavar="FILE", help="Write each view to a new file."),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option("--cache", metavar="FILE", help="Where a model's summaries are kept."),
    ] = None,
    allow_llm: Annotated[
        bool, typer.Option("--allow-llm", help="Ask a model for summaries that are not kept.")
    ] = False,
) -> None:
    """Show what would have been sent, had another policy decided.

    As in `cutbank replay fix-login --policy pi --limit 32000`: the policy is asked before each
    recorded call, and each compaction is shown with what left, and the prompts it led to. Nothing
    is compacted, and nothing stored that was not asked for.
    """
    with (
        open_call_session(call, session) as found,
        show_progress("calls", wanted=not call.as_json) as progress,
    ):
        done = run_replay.replay(
            found,
            policy,
            settings=parse_settings(settings or []),
            limit=limit,
            summarizer=summarizer,
            budget=budget,
            model=model,
            lineage=lineage,
            dump_views=dump_views,
            cache=cache,
            allow_llm=allow_llm,
            progress=progress,
        )
    if done.damaged:
        were = "summary was" if done.damaged == 1 else "summaries were"
        print_note(f"{done.damaged} {were} damaged in the cache, and not used")
    if call.as_json:
        print_json(replay_to_json(done))
    else:
        print_replay(done)
