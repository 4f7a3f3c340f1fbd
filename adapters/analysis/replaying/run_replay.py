"""Replays one stored session, and stores or writes the results that were asked for."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ....domain.compaction import MAIN_LINEAGE
from ....domain.errors import InvalidSettingError
from ....domain.hooks import Progress
from ....domain.policies.policy import Policy
from ....projections.replay.decider import Decider
from ....projections.replay.policy_decider import PolicyDecider
from ....projections.replay.recording_calibration import calibrate_recording
from ....projections.replay.replay import replay_recording
from ...runtime.sessions.stored_session import StoredSession
from ...storage.event_log.storage_errors import translate_storage_errors
from .cached_summaries import CachedSummaries
from .deciders import SummaryOptions, make_decider
from .new_lineage import check_new_lineage, store_lineage
from .recordings import read_decisions, read_recording
from .replay_result import CallList, Replay
from .view_dump import open_view_dump


def replay(
    session: StoredSession,
    policy: str | Policy,
    *,
    settings: Mapping[str, Any] | None = None,
    limit: int | None = None,
    summarizer: str = "extractive",
    budget: int | None = None,
    model: str | None = None,
    lineage: str | None = None,
    dump_views: str | Path | None = None,
    cache: str | Path | None = None,
    allow_llm: bool = False,
    progress: Progress | None = None,
) -> Replay:
    """Return what the model would have been sent at each recorded call, had `policy` decided.

    `policy` is a name or a value, `settings` its fields; `none` never compacts, `recorded` compacts
    as recorded. `limit` is the prompt's limit in tokens, `model` the agent's; `summarizer` is
    `extractive`, `recorded` or `llm`, `budget` the tokens of each summary. A model's summaries come
    from `cache`, a file, else from the one in the user's cache folder; with `allow_llm`, the model
    of the settings writes missing ones. `lineage` stores the decisions under a new name, and
    `dump_views` each view, as JSON Lines in a new file; nothing else is written. `progress` is
    called with how many calls are done, and of how many. Tokens are estimates.

    Raises PolicyFailedError if the policy raises, MissingSummariesError if a model would have to be
    asked, InvalidSettingError, NotFoundError, ConflictError and ExportError.
    """
    summaries = SummaryOptions(
        summarizer,
        budget,
        cache=Path(cache) if cache is not None else None,
        allow_llm=allow_llm,
        count_missing=True,
    )
    with translate_storage_errors(session.log.context.name):
        return run_replay(
            session,
            policy,
            settings,
            limit=limit,
            summaries=summaries,
            model=model,
            lineage=lineage,
            dump_views=Path(dump_views) if dump_views is not None else None,
            progress=progress,
        )


def run_replay(
    session: StoredSession,
    policy: str | Policy,
    settings: Mapping[str, Any] | None = None,
    *,
    limit: int | None = None,
    summaries: SummaryOptions,
    model: str | None = None,
    lineage: str | None = None,
    dump_views: Path | None = None,
    progress: Progress | None = None,
) -> Replay:
    if limit is not None and limit < 1:
        raise InvalidSettingError(f"a limit cannot be {limit}; it is 1 token or more")
    if lineage is not None:
        check_new_lineage(session, lineage)
    found = session.log.find_context_limit(limit=limit, model=model)
    recording = calibrate_recording(
        read_recording(session), read_decisions(session, MAIN_LINEAGE), MAIN_LINEAGE
    )
    decider = make_decider(
        session,
        policy,
        settings,
        found.tokens,
        summarizer=summaries,
        recording=recording,
        lineage=lineage or "replay",
        model=model,
    )
    name = policy if isinstance(policy, str) else policy.name
    if lineage is not None and not isinstance(decider, PolicyDecider):
        raise InvalidSettingError(f"{name!r} decides nothing new that a lineage could hold")
    listing = CallList(recording)
    kept = _find_cache(decider)
    with ExitStack() as stack:
        if kept:
            stack.enter_context(kept.cache)
        dump = stack.enter_context(open_view_dump(session.key, dump_views)) if dump_views else None
        run = replay_recording(recording, decider, limit=found.tokens, lineage=lineage or "replay")
        for served in run:
            listing.add(served)
            if dump:
                dump.add(served)
            if progress:
                progress(served.call.number, len(recording.calls))
        if kept:
            kept.check_missing()
        if lineage is not None and isinstance(decider, PolicyDecider):
            store_lineage(session, lineage, decider.events)
    return Replay(
        session=session.key,
        namespace=session.namespace,
        policy=name,
        limit=found.tokens,
        limit_source=found.source,
        summarizer=summaries.summarizer,
        calls=tuple(listing.calls),
        lineage=lineage,
        damaged=kept.cache.damaged if kept else 0,
        calibration=recording.calibration,
    )


def _find_cache(decider: Decider) -> CachedSummaries | None:
    if not isinstance(decider, PolicyDecider):
        return None
    writers = decider.writers.summarizers
    return next((one for one in writers if isinstance(one, CachedSummaries)), None)
