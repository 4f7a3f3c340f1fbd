"""Defines the contract between a policy and the store, and checks any policy against it."""

import json
import re
from collections.abc import Iterator
from dataclasses import MISSING, asdict, fields, replace
from types import NoneType, UnionType
from typing import Any, ClassVar, Union, get_args, get_origin, get_type_hints

from ..compaction_events import Trigger
from ..errors import CutbankError, InvalidSettingError, NothingToCompactError
from ..settings import QUIRK, list_settings
from ..window import Plan, Window
from .catalog import build_with_preset
from .policy import Policy, configure_policy, find_faults, get_presets, is_due
from .sample_windows import iter_sample_windows

_MAX_FAULTS_SHOWN = 20


class _FaultError(Exception):
    """What a policy did that it must not do."""


def check_policy(policy: Policy | type[Policy]) -> None:
    """Raise AssertionError, listing every fault, unless the policy keeps the contract.

    For a class, its defaults and all of its presets are checked; for a value, its own settings.
    Speed is not checked.
    """
    policy_class = policy if isinstance(policy, type) else type(policy)
    faults = [f"{policy_class.__name__}: {fault}" for fault in find_shape_faults(policy_class)]
    if not faults:
        each = _iter_presets(policy) if isinstance(policy, type) else [(policy.name, policy)]
        faults = [f"{name}: {fault}" for name, one in each for fault in _find_faults(one)]
    if left_out := len(faults[_MAX_FAULTS_SHOWN:]):
        faults[_MAX_FAULTS_SHOWN:] = [f"... and {left_out:,} more"]
    if faults:
        raise AssertionError("\n".join(faults))


def _iter_presets(policy_class: type[Policy]) -> Iterator[tuple[str, Policy]]:
    """Yield the policy with its defaults and each preset, unless required settings are missing."""
    required = {one.name for one in list_settings(policy_class) if one.default is MISSING}
    for preset, settings in {"": {}, **get_presets(policy_class)}.items():
        if required <= set(settings):
            name = f"{policy_class.name}@{preset}" if preset else policy_class.name
            yield name, build_with_preset(policy_class, preset, {})


def _find_faults(policy: Policy) -> Iterator[str]:
    yield from _check_as_value(policy)
    for name, window in iter_sample_windows():
        try:
            for fault in _check_on_window(policy, window):
                yield f"{name}: {fault}"
        except _FaultError as fault:
            yield f"{name}: {fault}"


def _check_as_value(policy: Policy) -> Iterator[str]:
    """Check that the settings survive JSON, since requests store policies by name and settings."""
    try:
        read = json.loads(json.dumps(asdict(policy)))
    except (TypeError, ValueError) as error:
        yield f"its settings are not JSON: {error}"
        return
    if configure_policy(type(policy), {}, read) != policy:
        yield "it is another one when it is read back from its settings as JSON"
    for setting in list_settings(policy):
        try:
            replace(policy, **{setting.name: [None]})
        except InvalidSettingError:
            continue
        except Exception as error:  # noqa: BLE001 - anything but InvalidSettingError is a fault
            described = _describe_error(error)
            yield f"{setting.name} = [None] raises {described}, not InvalidSettingError"
        else:
            yield f"{setting.name} may be [None]: call check(self) in __post_init__"


def _check_on_window(policy: Policy, window: Window) -> Iterator[str]:
    before = replace(window, items=list(window.items), hides=dict(window.hides))
    answer = _ask_for_plan(policy, window)
    if window != before:
        raise _FaultError("it changes the window")
    if _ask_for_plan(policy, before) != answer:
        raise _FaultError("it answers otherwise when it is asked again")
    if isinstance(answer, Plan):
        yield from _find_plan_faults(answer, window)
    yield from _find_threshold_faults(policy, window, answer)


def _ask_for_plan(policy: Policy, window: Window) -> Plan | str | None:
    """Return the plan, or None, or the reason why there is none."""
    try:
        answer: Any = policy.plan(window)
    except NothingToCompactError as nothing:
        return str(nothing)
    except Exception as error:
        # It may raise anything; the report shows its author what.
        why = "it may raise NothingToCompactError"
        raise _FaultError(f"plan raises {_describe_error(error)}; {why}") from error
    if answer is not None and not isinstance(answer, Plan):
        raise _FaultError(f"plan returns {type(answer).__name__}, not a Plan or None")
    return answer


def _find_plan_faults(plan: Plan, window: Window) -> Iterator[str]:
    seen = {item.position for item in window.items}
    if plan.cut is not None and not 1 <= plan.cut <= window.after + 1:
        yield f"it cuts at {plan.cut}, outside the window"
    if not plan.reason.strip() or "\n" in plan.reason:
        yield "its plan gives no reason of one line"
    if min(plan.summary_tokens, plan.turn_tokens) < 0:
        yield "its plan has a summary of less than 0 tokens"
    if strange := sorted({trim.position for trim in plan.trims} - seen):
        yield f"it shortens #{strange[0]}, which is not in the window"
    if strange := sorted(set(plan.drops) - seen):
        yield f"it drops #{strange[0]}, which is not in the window"


def _find_threshold_faults(
    policy: Policy, window: Window, answer: Plan | str | None
) -> Iterator[str]:
    """Check that `fires` and `plan` agree on the threshold."""
    if not hasattr(policy, "fires"):
        return
    try:
        fires: Any = is_due(policy, window)
    except Exception as error:
        raise _FaultError(f"fires raises {_describe_error(error)}") from error
    if not isinstance(fires, bool):
        yield f"fires returns {fires!r}, not True or False"
    elif isinstance(answer, Plan) and window.trigger is Trigger.THRESHOLD and not fires:
        yield "it has a plan and says that it does not fire: the plan would never be used"
    elif answer is None and window.trigger is Trigger.THRESHOLD and fires:
        asked = replace(window, trigger=Trigger.MANUAL)
        if isinstance(_ask_for_plan(policy, asked), Plan):
            yield "it fires, and has no plan but where it is asked: it would fire again and again"


def _describe_error(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


_NAME = re.compile(r"[a-z][a-z0-9_.-]*")
"""The names allowed for a policy, an alias or a preset, since `@` separates them."""
_SETTING_TYPES = (int, float, bool, str)
"""The types of settings that files and command lines can give."""


def find_shape_faults(policy_class: Any) -> Iterator[str]:
    """Yield the faults of the class, one line each; its behavior is not checked."""
    if not isinstance(policy_class, type):
        yield f"{policy_class!r} is no class"
        return
    if not getattr(getattr(policy_class, "__dataclass_params__", None), "frozen", False):
        yield f"{policy_class.__name__} is not a @dataclass(frozen=True)"
        return
    words = [("name", getattr(policy_class, "name", None))]
    words += [("alias", getattr(policy_class, "alias", None) or "none")]
    for what, word in words:
        if not isinstance(word, str) or not _NAME.fullmatch(word):
            yield f"its {what} is {word!r}; it takes small letters, digits, '.', '_' and '-'"
    if not callable(getattr(policy_class, "plan", None)):
        yield "it has no method plan(window)"
    known = {"help", QUIRK}
    if undeclared := [n.name for n in fields(policy_class) if not known & n.metadata.keys()]:
        yield f"{', '.join(undeclared)}: declare each as setting(default, help=...)"
        return
    try:
        yield from _find_setting_faults(policy_class)
    except NameError as error:
        yield f"the types of its settings cannot be read: {error}"


def _find_setting_faults(policy_class: type[Policy]) -> Iterator[str]:
    for name, hint in get_type_hints(policy_class).items():
        if name not in policy_class.__dataclass_fields__ or get_origin(hint) is ClassVar:
            continue
        kinds = get_args(hint) if get_origin(hint) in {Union, UnionType} else (hint,)
        if not set(kinds) <= {*_SETTING_TYPES, NoneType} or len(set(kinds) - {NoneType}) != 1:
            yield f"{name} is {hint}; a setting is an int, float, bool or str, or none"
            return
    known = {setting.name: setting for setting in list_settings(policy_class)}
    defaults = {one.name: one.default for one in known.values() if one.default is not MISSING}
    faulty = find_faults(policy_class, defaults)
    for setting in known.values():
        if setting.name in faulty:
            takes = setting.accepted_values
            yield f"{setting.name} is {setting.default!r} by default; it takes {takes}"
        if not setting.help.strip() or "\n" in setting.help:
            yield f"{setting.name} has no help of one line"
    required = {one.name for one in known.values() if one.default is MISSING}
    for preset, values in get_presets(policy_class).items():
        if not isinstance(preset, str) or not _NAME.fullmatch(preset):
            yield f"its preset is called {preset!r}; it takes small letters, digits and '_'"
        try:
            # A preset need not give all required settings.
            if required <= set(values):
                configure_policy(policy_class, {}, values)
        except CutbankError as error:
            yield f"its preset @{preset} is refused: {error}"
