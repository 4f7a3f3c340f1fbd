"""The verb that runs a recorded session through again, under another policy."""

from pathlib import Path
from typing import Annotated

import typer

from ...analysis.replaying import run
from ...analysis.replaying.deciders import SUMMARISERS
from .completing import policy_names, policy_settings
from .database import opened_session
from .invocation import Invocation
from .printing import remark, say_json
from .progress_bar import progress_bar
from .replay_lines import as_json, say_replay
from .set_words import settings_of
from .words import SessionName


def replay(
    call: Invocation,
    session: SessionName,
    *,
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            metavar="NAME[@PRESET]",
            help="See `cutbank policies`; none never compacts, recorded does as was done.",
            autocompletion=policy_names,
        ),
    ],
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
        typer.Option(
            "--limit",
            metavar="TOKENS",
            min=1,
            help="What a prompt may have; else as the settings, the log or the model say.",
        ),
    ] = None,
    summariser: Annotated[
        str,
        typer.Option(
            "--summariser", metavar="NAME", help=f"Who writes summaries: {', '.join(SUMMARISERS)}."
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
        opened_session(call, session) as found,
        progress_bar("calls", wanted=not call.as_json) as progress,
    ):
        done = run.replay(
            found,
            policy,
            settings=settings_of(settings or []),
            limit=limit,
            summarizer=summariser,
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
        remark(f"{done.damaged} {were} damaged in the cache, and not used")
    if call.as_json:
        say_json(as_json(done))
    else:
        say_replay(done)
