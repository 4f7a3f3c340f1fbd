"""What a shell offers for a word that was begun: policies, settings, sessions, formats."""

import shlex
from collections.abc import Iterable, Iterator

import typer

from ....domain.errors import CutbankError
from ....domain.policies.catalog import DEFAULT, alias_of
from ....domain.policies.policy import NONE, Setting, presets_of, settings_of
from .completion import Begun
from .invocation import Invocation

Offered = list[tuple[str, str]]
"""Words, and what each of them is."""


def policy_names(ctx: typer.Context, incomplete: str) -> Offered:
    """`NAME` and `NAME@PRESET` of every policy, its alias included."""
    return _fitting(ctx, incomplete, _policies())


def policy_settings(ctx: typer.Context, incomplete: str) -> Offered:
    """`KEY=` of the policy that was named, or the default one; behind it the values, if few."""
    from ...settings.policy_catalog import policy_class_named  # noqa: PLC0415 - only who sets pays for it

    try:
        policy = policy_class_named((ctx.params.get("policy") or DEFAULT).partition("@")[0])
    except CutbankError:
        return []
    return _fitting(ctx, incomplete, _pairs(settings_of(policy)))


def format_names(ctx: typer.Context, incomplete: str) -> Offered:
    """The formats that a session can be written in."""
    from ...runtime.archive import writer as archive  # noqa: PLC0415 - only who exports pays for it
    from ...transcripts.formats.catalog import FORMATS  # noqa: PLC0415

    named = [(one.name, one.what) for one in FORMATS.values() if one.write or one.write_folder]
    return _fitting(ctx, incomplete, [*named, (archive.NAME, "sessions whole")])


def session_names(ctx: typer.Context, incomplete: str) -> Offered:
    """The sessions of the database that was named; none where it cannot be read."""
    from .database import opened_store  # noqa: PLC0415 - only who names a session pays for it

    call = Invocation(db=_said(ctx, "db"), settings_file=_said(ctx, "settings_file"))
    namespace = _said(ctx, "namespace") or call.namespace
    try:
        with opened_store(call) as store:
            names = [session.key for session in store.sessions(namespace)]
    except (CutbankError, OSError):
        return []
    # What a shell would have to quote is left to who types it.
    plain = ((name, "") for name in names if shlex.quote(name) == name)
    return _fitting(ctx, incomplete, plain)


def _policies() -> Iterator[tuple[str, str]]:
    from ...settings.policy_catalog import policies  # noqa: PLC0415 - only who names one pays for it

    for policy in policies().values():
        source = getattr(policy, "source", "")
        for name in filter(None, (policy.name, alias_of(policy))):
            yield name, source
            for preset in presets_of(policy):
                yield f"{name}@{preset}", source


def _pairs(settings: Iterable[Setting]) -> Iterator[tuple[str, str]]:
    for one in settings:
        yield f"{one.name}=", one.help
        values = [*one.among, *(["true", "false"] if one.type is bool else [])]
        for value in [*values, *([NONE] if one.may_be_none else [])]:
            yield f"{one.name}={value}", one.help


def _fitting(ctx: typer.Context, incomplete: str, words: Iterable[tuple[str, str]]) -> Offered:
    begun = ctx.find_root().obj
    before = begun.before if isinstance(begun, Begun) else ""
    return [
        (word.removeprefix(before), about)
        for word, about in words
        if word.startswith(before + incomplete)
    ]


def _said(ctx: typer.Context, name: str) -> str | None:
    """An option that every verb has: what was said last, after the verb or before it."""
    return ctx.params.get(name) or ctx.find_root().params.get(name)
