"""Completes words in a shell: answers its request, and suggests policies, sessions and formats."""

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import typer

from ....domain.errors import CutbankError
from ....domain.policies.catalog import DEFAULT_POLICY, find_alias
from ....domain.policies.policy import get_presets
from ....domain.settings import NO_VALUE, SettingInfo, list_settings
from .verbs import Invocation

WORD_BREAKS = {"@", "="}
"""Characters that bash treats as separate words."""

Suggestions = list[tuple[str, str]]
"""Words with their descriptions."""


def run_completion(program: Any, shell: str) -> None:
    """Print the completions for a shell such as `complete_bash`, and exit."""
    begun = ""
    # Descriptions wrap at this width; fish would take each line for a word.
    os.environ["COLUMNS"] = "1000"
    if shell.endswith("_bash"):
        words = os.environ.get("COMP_WORDS", "").split("\n")
        words, at, begun = join_broken_words(words, int(os.environ.get("COMP_CWORD") or 0))
        os.environ |= {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(at)}
    program.main([], prog_name="cutbank", obj=begun)


def join_broken_words(words: Sequence[str], current: int) -> tuple[list[str], int, str]:
    """Rejoin words that bash split, and return them with the index of the completed word.

    Of that word, only the part that bash will replace is included; the last value is the rest.
    """
    typed: list[str] = []
    is_joined = False
    for at, word in enumerate([*words[:current], *(words[current : current + 1] or [""])]):
        is_break = word in WORD_BREAKS and bool(typed)
        if is_break and typed[-1].startswith("-"):
            # `--policy=NAME` is the option and its value.
            if at == current:
                typed.append("")
            continue
        if is_break or is_joined:
            if at == current:
                before = typed.pop() + (word if is_break else "")
                return [*typed, "" if is_break else word], len(typed), before
            typed[-1] += word
        else:
            typed.append(word)
        is_joined = is_break
    return typed, len(typed) - 1, ""


def suggest_policies(ctx: typer.Context, incomplete: str) -> Suggestions:
    """Suggest `NAME` and `NAME@PRESET` of every policy, including its alias."""
    return _match_suggestions(ctx, incomplete, _policy_names())


def suggest_settings(ctx: typer.Context, incomplete: str) -> Suggestions:
    """Suggest `KEY=` for the chosen or default policy; after it the values, if they are few."""
    from ...settings.policy_catalog import find_policy_class  # noqa: PLC0415 - only who sets pays for it

    try:
        policy = find_policy_class((ctx.params.get("policy") or DEFAULT_POLICY).partition("@")[0])
    except CutbankError:
        return []
    return _match_suggestions(ctx, incomplete, _setting_pairs(list_settings(policy)))


def suggest_formats(ctx: typer.Context, incomplete: str) -> Suggestions:
    from ...transcripts.formats import catalog  # noqa: PLC0415 - start-up time

    named = [
        (one.name, one.description)
        for one in catalog.FORMATS.values()
        if one.write or one.write_folder
    ]
    return _match_suggestions(ctx, incomplete, [*named, (catalog.ARCHIVE_FORMAT, "sessions whole")])


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
    return _match_suggestions(ctx, incomplete, plain)


def _policy_names() -> Iterator[tuple[str, str]]:
    from ...settings.policy_catalog import list_policies  # noqa: PLC0415 - only who names one pays for it

    for policy in list_policies().values():
        source = getattr(policy, "source", "")
        for name in filter(None, (policy.name, find_alias(policy))):
            yield name, source
            for preset in get_presets(policy):
                yield f"{name}@{preset}", source


def _setting_pairs(settings: Iterable[SettingInfo]) -> Iterator[tuple[str, str]]:
    for one in settings:
        yield f"{one.name}=", one.help
        values = [*one.among, *(["true", "false"] if one.value_type is bool else [])]
        for value in [*values, *([NO_VALUE] if one.may_be_none else [])]:
            yield f"{one.name}={value}", one.help


def _match_suggestions(
    ctx: typer.Context, incomplete: str, words: Iterable[tuple[str, str]]
) -> Suggestions:
    before = ctx.find_root().obj  # as `run_completion` was given it
    return [
        (word.removeprefix(before), about)
        for word, about in words
        if word.startswith(before + incomplete)
    ]


def _read_option(ctx: typer.Context, name: str) -> str | None:
    """Return a shared option: the last value given, before or after the verb."""
    return ctx.params.get(name) or ctx.find_root().params.get(name)
