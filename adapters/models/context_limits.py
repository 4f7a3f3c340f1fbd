"""Decides how many tokens a session's prompts may have; all other code asks here."""

from collections.abc import Mapping
from datetime import datetime

from ...domain.context_limit import (
    DEFAULT_LIMIT,
    LARGER_WINDOW_TOKENS,
    NOTHING_LOGGED,
    ContextLimit,
    LimitSource,
    LoggedContext,
    find_limit_in_log,
    is_larger_variant,
)
from ...domain.models import ModelFacts, ModelOverride
from ..settings.settings import Settings


def resolve_limit(
    settings: Settings,
    model: str | None = None,
    logged: LoggedContext = NOTHING_LOGGED,
    given: int | None = None,
) -> ContextLimit:
    """Resolve the context limit of a session.

    The first of these decides: `given`, the settings, the session's log, what is known of the model
    (`model`, else the log's), the default. The log only counts for its own model.
    """
    if given is not None:
        return ContextLimit(given, LimitSource.ARGUMENT)
    if settings.compaction.limit:
        return ContextLimit(settings.compaction.limit, LimitSource.SETTINGS)
    asked = model or logged.model
    if logged.window and asked == logged.model and not settings.models:
        facts = None  # the log comes first, and looking a model up takes half a second
    else:
        facts = find_facts(settings, asked) if asked else None
    if facts and facts.is_context_set and facts.prompt:
        return ContextLimit(facts.prompt, LimitSource.SETTINGS)
    known = facts.prompt if facts else None
    if asked == logged.model or _is_same_model(settings, asked, logged.model):
        larger = LARGER_WINDOW_TOKENS if facts and facts.family == "anthropic" else 0
        if found := find_limit_in_log(logged, known, larger):
            return ContextLimit(found, LimitSource.LOG)
    if known:
        return ContextLimit(known, LimitSource.MODEL)
    return ContextLimit(DEFAULT_LIMIT, LimitSource.DEFAULT)


def _is_same_model(settings: Settings, one: str | None, other: str | None) -> bool:
    """Return whether two names mean the same model in the same size, however they are spelled."""
    if one is None or other is None or is_larger_variant(one) != is_larger_variant(other):
        return False
    return not _model_names(settings, one).isdisjoint(_model_names(settings, other))


def _model_names(settings: Settings, model: str) -> set[str]:
    from .model_names import parse_model_name  # noqa: PLC0415 - the catalog needs it too

    facts = find_facts(settings, model)
    return {reading.maker_name for reading in parse_model_name(model)} | (
        {facts.name} if facts else set()
    )


def make_overrides(settings: Settings) -> Mapping[str, ModelOverride]:
    """Return the user's own model facts."""
    return {name: ModelOverride(**dict(model)) for name, model in settings.models.items()}


def find_facts(settings: Settings, model: str, *, at: datetime | None = None) -> ModelFacts | None:
    """Return the facts of a model, with the user's own first; prices are as of `at`, or today."""
    from .model_catalog import look_up_facts  # noqa: PLC0415 - it takes half a second to load

    return look_up_facts(model, make_overrides(settings), at=at, betas=settings.compaction.betas)
