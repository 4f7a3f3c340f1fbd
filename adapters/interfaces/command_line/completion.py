"""Suggests words to a shell that completes them: policies, settings, sessions and formats."""

import shlex
from collections.abc import Iterable, Iterator

import typer

from ....domain.errors import CutbankError
from ....domain.policies.catalog import DEFAULT_POLICY, find_alias
from ....domain.policies.policy import get_presets
from ....domain.settings import NO_VALUE, SettingInfo, list_settings
from .verbs import Invocation

Suggestions = list[tuple[str, str]]
"""Words with their descriptions."""


def suggest_policies(incomplete: str) -> Suggestions:
    """Suggest `NAME` and `NAME@PRESET` of every policy, including its alias."""
    from ...settings.policy_catalog import list_policies  # noqa: PLC0415 - only who names one pays for it

    named = [
        (f"{name}{preset}", getattr(policy, "source", ""))
        for policy in list_policies().values()
        for name in filter(None, (policy.name, find_alias(policy)))
        for preset in ("", *(f"@{preset}" for preset in get_presets(policy)))
    ]
    return _match_suggestions(incomplete, named)


def suggest_settings(ctx: typer.Context, incomplete: str) -> Suggestions:
    """Suggest `KEY=` for the chosen or default policy; after it the values, if they are few."""
    from ...settings.policy_catalog import find_policy_class  # noqa: PLC0415 - only who sets pays for it

    try:
        policy = find_policy_class((ctx.params.get("policy") or DEFAULT_POLICY).partition("@")[0])
    except CutbankError:
        return []
    return _match_suggestions(incomplete, _setting_pairs(list_settings(policy)))


def suggest_formats(incomplete: str) -> Suggestions:
    from ...transcripts.formats import catalog  # noqa: PLC0415 - start-up time

    named = [(one.name, one.description) for one in catalog.FORMATS.values() if one.write]
    return _match_suggestions(incomplete, [*named, (catalog.ARCHIVE_FORMAT, "sessions whole")])


def suggest_sessions(ctx: typer.Context, incomplete: str) -> Suggestions:
    """Suggest the sessions of the chosen database; none if it cannot be read."""
    from .sessions import open_call_store  # noqa: PLC0415 - only who names a session pays for it

    call = Invocation(db=_read_option(ctx, "db"), settings_file=_read_option(ctx, "settings_file"))
    namespace = _read_option(ctx, "namespace") or call.namespace
    try:
        with open_call_store(call) as store:
            names = [session.key for session in store.sessions(namespace)]
    except (CutbankError, OSError):
        return []
    # Leave out names that a shell would have to quote.
    plain = ((name, "") for name in names if shlex.quote(name) == name)
    return _match_suggestions(incomplete, plain)


def _setting_pairs(settings: Iterable[SettingInfo]) -> Iterator[tuple[str, str]]:
    for one in settings:
        yield f"{one.name}=", one.help
        values = [*one.among, *(["true", "false"] if one.value_type is bool else [])]
        for value in [*values, *([NO_VALUE] if one.may_be_none else [])]:
            yield f"{one.name}={value}", one.help


def _match_suggestions(incomplete: str, words: Iterable[tuple[str, str]]) -> Suggestions:
    return [(word, about) for word, about in words if word.startswith(incomplete)]


def _read_option(ctx: typer.Context, name: str) -> str | None:
    """Return a shared option: the last value given, before or after the verb."""
    return ctx.params.get(name) or ctx.find_root().params.get(name)
