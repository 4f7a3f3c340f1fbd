"""What the settings make of a compaction: who decides, who writes, what stays, what it may cost."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from ....domain.context_limit import NOTHING_LOGGED, LoggedContext
from ....domain.errors import InvalidSettingError
from ....domain.models import ModelOverride
from ....domain.policies.policy import Policy
from ....domain.summaries.extractive import Extractive
from ....domain.summaries.summariser import Summariser
from ...models.context_limits import facts_by, limit_by, overrides_by
from ...settings.policy_catalog import policy_named
from ...settings.settings import Settings
from ...storage.event_log.plain_errors import speaking_plainly
from ..sessions.session_log import SessionLog
from .options import CompactionOptions, LoopHabits, LoopOptions
from .order import Order
from .outcome import Outcome
from .summary_chain import SummaryChain


def compact(
    log: SessionLog,
    policy: str | Policy | None,
    *,
    limit: int | None = None,
    model: str | None = None,
    options: CompactionOptions | None = None,
) -> Outcome:
    """Compact a session; see `StoredSession.compact`."""
    options = options or CompactionOptions()
    settings = log.settings
    chain = options.chain
    if options.summarizers is not None:
        chain = chain_by(settings, model, tuple(options.summarizers))
    order = order_by(
        settings,
        model,
        log.logged_context(options.lineage, limit),
        policy=policy_by(settings, policy, options.settings),
        limit=limit,
        chain=chain,
        pins=options.pins,
        instructions=options.instructions,
        tracked_files=options.tracked_files,
        trigger=options.trigger,
        idempotency_key=options.idempotency_key,
        activate=options.activate,
    )
    with speaking_plainly(log.context.name):
        compactor = log.compactor(options.lineage)
        if options.dry_run:
            return compactor.explained(order)
        return compactor.compact(order, options.cancellation)


def policy_by(
    settings: Settings, policy: str | Policy | None, fields: Mapping[str, Any] | None
) -> Policy | None:
    """Return the policy of a name, else the settings' one, with these fields.

    None if neither is given: then the settings decide.
    """
    if policy is None:
        return settings.policy_with(fields) if fields else None
    return policy_named(policy, fields or {}) if isinstance(policy, str) else policy


def order_by(
    settings: Settings,
    model: str | None = None,
    logged: LoggedContext = NOTHING_LOGGED,
    **given: Any,
) -> Order:
    """The order for an agent that asks `model`; what is given and not None goes before settings.

    `logged` is what the session's calls tell of the model's window. Raises InvalidSettingError
    where the settings ask for what cannot be: a summary by a model of which nobody said the name, a
    price of one that is not known.
    """
    asked = {name: value for name, value in given.items() if value is not None}
    compaction = settings.compaction
    must_pay = compaction.worthwhile == "price"
    facts = None
    if model and (must_pay or ("limit" not in asked and compaction.limit is None)):
        facts = facts_by(settings, model)
    if must_pay and model and (facts is None or not facts.prices):
        raise InvalidSettingError(
            f"compaction.worthwhile is price, and the price of {model!r} is not known: "
            f'give it in [models."{model}"], or set worthwhile to always'
        )
    limit = limit_by(settings, model, logged, asked.pop("limit", None))
    return Order(
        **{
            "policy": asked.get("policy") or settings.policy,
            "limit": limit.tokens,
            "limit_source": limit.source,
            "chain": chain_by(settings, model) if "chain" not in asked else asked["chain"],
            "pins": settings.pins.rules(),
            "minimum_gain": compaction.minimum_gain,
            "instructions": compaction.instructions,
            "prices": facts,
            "expected_calls": compaction.expected_calls,
            "must_pay": must_pay and facts is not None,
            **asked,
        }
    )


def chain_by(
    settings: Settings, model: str | None = None, first: tuple[Summariser, ...] | None = None
) -> SummaryChain:
    """Who writes summaries: those that are given, or those that the settings name."""
    summary = settings.summary
    writers = (
        first
        if first is not None
        else tuple(_summariser(name, settings, model) for name in summary.chain)
    )
    return SummaryChain(
        writers,
        time_limit_s=summary.time_limit,
        retries=summary.retries,
        backoff_s=summary.backoff,
    )


def habits_by(settings: Settings, options: LoopOptions) -> LoopHabits:
    """Decide when a loop compacts by itself: by its options, or else by the settings."""
    compaction = settings.compaction
    prepare_at = compaction.prepare_at if options.prepare_at is None else options.prepare_at
    return LoopHabits(
        auto=compaction.auto if options.auto is None else options.auto,
        once_a_turn=(
            compaction.once_a_turn if options.once_a_turn is None else options.once_a_turn
        ),
        regrowth=options.regrowth,
        prepare_at=prepare_at or None,
    )


def llm_by(settings: Settings, model: str | None = None) -> Summariser:
    """The model that section `summary` names, whether or not its chain asks it."""
    return _summariser("llm", settings, model)


def _summariser(name: str, settings: Settings, model: str | None) -> Summariser:
    if name == Extractive().name:
        return Extractive()
    from ...models.summarizers.catalog import summariser_named  # noqa: PLC0415 - who needs it pays for it

    summary = settings.summary
    from_originals = summary.source == "originals"
    if name == "command":
        return summariser_named(name, argv=summary.command, from_originals=from_originals)
    if name != "llm":
        return summariser_named(name)
    from ...models.model_catalog import cost_of  # noqa: PLC0415 - as above

    return summariser_named(
        name,
        model=summary.model or _cheap(model),
        base_url=summary.base_url,
        key_from=summary.key_from,
        from_originals=from_originals,
        from_served_prefix=summary.prompt == "served-prefix",
        by_form=summary.prompt == "policy",
        is_streamed=summary.streamed,
        names_facts=summary.with_facts,
        priced=partial(_priced, cost_of, overrides_by(settings)),
    )


def _priced(cost_of: Any, overrides: Mapping[str, ModelOverride], model: str, usage: Any) -> Any:
    return cost_of(model, usage, overrides)


def _cheap(model: str | None) -> str:
    """A cheap model where the agent's is, in the words of the library that asks it."""
    if model is None:
        raise InvalidSettingError(
            "summary.chain names llm, and nobody says which model: set summary.model, "
            "or name the agent's model"
        )
    from ...models.cheaper_models import cheaper_than  # noqa: PLC0415 - as above

    name = cheaper_than(model)
    if ":" in name.partition("/")[0]:
        return name
    served_by = _provider(model)
    if served_by is None:
        raise InvalidSettingError(
            f"who serves {model!r} is not known: set summary.model, "
            "as in anthropic:claude-haiku-4-5"
        )
    return f"{served_by}:{name}"


ASKED_THROUGH = {
    "anthropic": "anthropic",
    "aws": "bedrock",
    "google": "google",
    "openai": "openai",
    "openrouter": "openrouter",
}
"""Providers by genai-prices' names, and what stands before a model's name to ask it there."""


def _provider(model: str) -> str | None:
    from ...models.model_catalog import facts_of  # noqa: PLC0415 - as above

    facts = facts_of(model)
    return ASKED_THROUGH.get(facts.provider or "") if facts else None
