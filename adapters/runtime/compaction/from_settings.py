"""Builds a compaction or a loop from options and settings: policy, summarizers, pins, prices."""

from dataclasses import replace
from functools import partial
from typing import Any

from ....domain.context_limit import NOTHING_LOGGED, LoggedContext
from ....domain.errors import InvalidSettingError
from ....domain.policies.policy import Policy
from ....domain.summaries.extractive import ExtractiveSummarizer
from ....domain.summaries.summarizer import Summarizer
from ...models.context_limits import find_facts, make_overrides, resolve_limit
from ...settings.policy_catalog import get_policy
from ...settings.settings import Settings
from ...storage.event_log.storage_errors import translate_storage_errors
from ..agent_loop import AgentLoop
from ..sessions.session_log import SessionLog
from .options import CompactionOptions, CompactionRequest, LoopOptions, SharedOptions
from .outcome import CompactionOutcome
from .summary_chain import SummaryChain


def compact(
    log: SessionLog,
    policy: str | Policy | None,
    *,
    limit: int | None = None,
    model: str | None = None,
    options: CompactionOptions | None = None,
) -> CompactionOutcome:
    options = options or CompactionOptions()
    request = _apply_options(
        log,
        policy,
        options,
        limit=limit,
        model=model,
        chain=options.chain,
        trigger=options.trigger,
        idempotency_key=options.idempotency_key,
        activate=options.activate,
    )
    with translate_storage_errors(log.context.name):
        compactor = log.compactor(options.lineage)
        if options.dry_run:
            return compactor.explain(request)
        return compactor.compact(request, options.cancellation)


def open_loop(
    log: SessionLog,
    policy: str | Policy | None = None,
    *,
    limit: int | None = None,
    model: str | None = None,
    options: LoopOptions | None = None,
) -> AgentLoop:
    """Open the loop of a session; see `StoredSession.loop`."""
    settings, options = log.settings, options or LoopOptions()
    auto, part = options.auto, options.prepare_at
    options = replace(
        options,
        auto=settings.compaction.auto if auto is None else auto,
        prepare_at=settings.compaction.prepare_at if part is None else part,
    )
    request = _apply_options(log, policy, options, limit=limit, model=model)
    return AgentLoop(log, request, options, model=model)


def _apply_options(
    log: SessionLog,
    policy: str | Policy | None,
    options: SharedOptions,
    *,
    limit: int | None,
    model: str | None,
    **given: Any,
) -> CompactionRequest:
    settings, fields = log.settings, options.settings
    if policy is None and fields:
        policy = settings.make_policy(fields)
    elif isinstance(policy, str):
        policy = get_policy(policy, **(fields or {}))
    if options.summarizers is not None:
        given["chain"] = make_summary_chain(settings, model, tuple(options.summarizers))
    return make_compaction_request(
        settings,
        model,
        log.logged_context(options.lineage, limit),
        policy=policy,
        limit=limit,
        pins=options.pins,
        instructions=options.instructions,
        tracked_files=options.tracked_files,
        **given,
    )


def make_compaction_request(
    settings: Settings,
    model: str | None = None,
    logged: LoggedContext = NOTHING_LOGGED,
    **given: Any,
) -> CompactionRequest:
    """Return the request for an agent that uses `model`; `given` values override settings.

    None counts as not given. `logged` is what the session's calls say about the model's window.
    Raises InvalidSettingError if the settings ask for the impossible, such as a summary by a model
    that is not named, or the price of an unknown model.
    """
    asked = {name: value for name, value in given.items() if value is not None}
    compaction = settings.compaction
    must_pay = compaction.worthwhile == "price"
    facts = None
    if model and (must_pay or ("limit" not in asked and compaction.limit is None)):
        facts = find_facts(settings, model)
    if must_pay and model and (facts is None or not facts.prices):
        raise InvalidSettingError(
            f"compaction.worthwhile is price, and the price of {model!r} is not known: "
            f'give it in [models."{model}"], or set worthwhile to always'
        )
    limit = resolve_limit(settings, model, logged, asked.pop("limit", None))
    return CompactionRequest(
        **{
            "policy": asked.get("policy") or settings.policy,
            "limit": limit.tokens,
            "limit_source": limit.source,
            "chain": asked.get("chain") or make_summary_chain(settings, model),
            "pins": settings.pins.make_rules(),
            "minimum_gain": compaction.minimum_gain,
            "instructions": compaction.instructions,
            "prices": facts,
            "require_saving": must_pay and facts is not None,
            **asked,
        }
    )


def make_summary_chain(
    settings: Settings, model: str | None = None, first: tuple[Summarizer, ...] | None = None
) -> SummaryChain:
    """Return the chain of the given summarizers, or else of those in the settings."""
    summary = settings.summary
    if first is None:
        first = tuple(make_summarizer(name, settings, model) for name in summary.chain)
    return SummaryChain(first, time_limit_s=summary.time_limit, retries=summary.retries)


def make_summarizer(name: str, settings: Settings, model: str | None = None) -> Summarizer:
    """Return a summarizer with what the section `summary` says, named there or not."""
    if name == ExtractiveSummarizer().name:
        return ExtractiveSummarizer()
    from ...models.summarizer_catalog import get_summarizer  # noqa: PLC0415 - imported on use

    summary = settings.summary
    from_originals = summary.source == "originals"
    if name == "command":
        return get_summarizer(name, argv=summary.command, from_originals=from_originals)
    if name != "llm":
        return get_summarizer(name)
    from ...models.model_catalog import compute_call_cost  # noqa: PLC0415 - imported on use

    return get_summarizer(
        name,
        model=summary.model or _find_cheap_model(model),
        base_url=summary.base_url,
        key_from=summary.key_from,
        from_originals=from_originals,
        from_served_prefix=summary.prompt == "served-prefix",
        by_form=summary.prompt == "policy",
        priced=partial(compute_call_cost, overrides=make_overrides(settings)),
    )


PROVIDER_PREFIXES = {"aws": "bedrock"} | {
    name: name for name in ("anthropic", "google", "openai", "openrouter")
}
"""The prefix of a model's name by provider, with providers named as in genai-prices."""


def _find_cheap_model(model: str | None) -> str:
    """Return the cheaper model of the same provider that writes an agent's summaries."""
    if model is None:
        raise InvalidSettingError(
            "summary.chain names llm, and no model is set: set summary.model, "
            "or name the agent's model"
        )
    from ...models.model_catalog import find_cheaper_model, look_up_facts  # noqa: PLC0415 - as above

    name, facts = find_cheaper_model(model), look_up_facts(model)
    if ":" in name.partition("/")[0]:
        return name
    if facts is None or facts.provider not in PROVIDER_PREFIXES:
        raise InvalidSettingError(
            f"who serves {model!r} is not known: set summary.model, "
            "as in anthropic:claude-haiku-4-5"
        )
    return f"{PROVIDER_PREFIXES[facts.provider]}:{name}"
