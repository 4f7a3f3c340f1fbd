"""Checks that a class is shaped as a policy, so that its settings can be listed and stored."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from ...errors import CutbankError
from ..policy import Policy, configure_policy, get_presets, list_settings

_NAME = re.compile(r"[a-z][a-z0-9_.-]*")
"""The names allowed for a policy, an alias or a preset, since `@` separates them."""
_SETTING_TYPES = (int, float, bool, str)
"""The types of settings that files and command lines can give."""


def find_shape_faults(policy_class: Any) -> Iterator[str]:
    """Yield the faults of the class, one line each; its behavior is not checked."""
    if not isinstance(policy_class, type):
        yield f"{policy_class!r} is no class"
        return
    if not _is_frozen(policy_class):
        yield f"{policy_class.__name__} is no @dataclass(frozen=True)"
        return
    yield from _find_name_faults(policy_class)
    if not callable(getattr(policy_class, "plan", None)):
        yield "it has no method plan(window)"
    undescribed = [
        declared.name
        for declared in fields(policy_class)
        if not {"unit", "help"} <= declared.metadata.keys()
    ]
    if undescribed:
        yield f"{', '.join(undescribed)}: declare each as setting(default, help=...)"
        return
    try:
        yield from _find_setting_faults(policy_class)
    except NameError as error:
        yield f"the types of its settings cannot be read: {error}"


def _is_frozen(policy_class: type) -> bool:
    made = getattr(policy_class, "__dataclass_params__", None)
    return is_dataclass(policy_class) and made is not None and made.frozen


def _find_name_faults(policy_class: type) -> Iterator[str]:
    name, alias = getattr(policy_class, "name", None), getattr(policy_class, "alias", None)
    for what, word in (("name", name), ("alias", alias)):
        if what == "alias" and word is None:
            continue
        if not isinstance(word, str) or not _NAME.fullmatch(word):
            yield f"its {what} is {word!r}; it takes small letters, digits, '.', '_' and '-'"


def _find_setting_faults(policy_class: type[Policy]) -> Iterator[str]:
    known = {setting.name: setting for setting in list_settings(policy_class)}
    hints = get_type_hints(policy_class)
    for setting in known.values():
        hint = hints[setting.name]
        kinds = get_args(hint) if get_origin(hint) in {Union, UnionType} else (hint,)
        if not set(kinds) <= {*_SETTING_TYPES, NoneType} or len(set(kinds) - {NoneType}) != 1:
            yield f"{setting.name} is {hint}; a setting is an int, float, bool or str, or none"
        elif setting.default is not MISSING and not setting.is_valid(setting.default):
            yield (
                f"{setting.name} is {setting.default!r} by default; it takes "
                f"{setting.accepted_values}"
            )
        if not setting.help.strip() or "\n" in setting.help:
            yield f"{setting.name} has no help of one line"
    if not isinstance(get_presets(policy_class), Mapping):
        yield "its presets are no mapping of names to settings"
        return
    required = [one.name for one in known.values() if one.default is MISSING]
    for preset, values in get_presets(policy_class).items():
        if not isinstance(preset, str) or not _NAME.fullmatch(preset):
            yield f"its preset is called {preset!r}; it takes small letters, digits and '_'"
        try:
            # A preset need not give all required settings.
            if set(required) <= set(values):
                configure_policy(policy_class, values)
        except CutbankError as error:
            yield f"its preset @{preset} is refused: {error}"
