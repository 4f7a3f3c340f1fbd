"""Defines the contract between a policy and the store, and checks any policy against it."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, fields, replace
from types import NoneType, UnionType
from typing import Any, ClassVar, Union, get_args, get_origin, get_type_hints

from ..compaction_events import Trigger
from ..errors import CutbankError, InvalidSettingError, NothingToCompactError
from ..settings import QUIRK, list_settings
from ..settlement import settle_plan
from ..window import Plan, Window
from .policy import Policy, configure_policy, find_faults, get_presets, is_due
from .sample_windows import compact_window, iter_sample_windows

_MAX_ROUNDS = 20
"""How often in a row an unchanged view may be compacted."""
_MAX_MANUAL_ROUNDS = 3
_MIN_GAIN = 0.1
"""The share that the store by default wants an automatic compaction to save."""
_MAX_FAULTS_SHOWN = 20


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
    named = {f"@{preset}": settings for preset, settings in get_presets(policy_class).items()}
    for preset, settings in {"": {}, **named}.items():
        if required <= set(settings):
            yield f"{policy_class.name}{preset}", configure_policy(policy_class, {}, settings)


def _find_faults(policy: Policy) -> Iterator[str]:
    yield from _check_as_value(policy)
    for name, window in iter_sample_windows():
        for fault in _check_on_window(policy, window):
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
    """Yield the faults of the answer to a window, and to the windows that follow from it.

    A view that is compacted repeatedly without new blocks must become small enough in the end;
    manual requests may go on for longer than is tried here.
    """
    is_asked = not window.trigger.is_automatic
    least, rounds = (0.0, _MAX_MANUAL_ROUNDS) if is_asked else (_MIN_GAIN, _MAX_ROUNDS)
    for generation in range(1, rounds + 1):
        before = replace(window, items=list(window.items), hides=dict(window.hides))
        answer = _ask_for_plan(policy, window)
        if window != before:
            yield "it changes the window"
            return
        if _ask_for_plan(policy, before) != answer:
            yield "it answers otherwise when it is asked again"
            return
        faults = [
            *_find_form_faults(answer, window),
            *_find_threshold_faults(policy, window, answer),
        ]
        yield from faults
        if faults or not isinstance(answer, Plan):
            return
        try:
            settlement = settle_plan(window, answer)
        except NothingToCompactError:
            return
        smaller = compact_window(window, settlement, generation)
        if window.tokens - smaller.tokens <= least * (window.tokens - window.request_tokens):
            return
        window = smaller
    if not is_asked:
        yield f"after {rounds} compactions one upon the other it wants another one"


@dataclass(frozen=True)
class _NoPlan:
    """The reason why there is no plan, or the description of an error that must not be raised."""

    text: str
    is_fault: bool = False


_Answer = Plan | _NoPlan | None


def _ask_for_plan(policy: Policy, window: Window) -> _Answer:
    try:
        answer: Any = policy.plan(window)
    except NothingToCompactError as nothing:
        return _NoPlan(str(nothing))
    except Exception as error:  # noqa: BLE001 - reported to the policy's author
        return _NoPlan(_describe_error(error), is_fault=True)
    if answer is None or isinstance(answer, Plan):
        return answer
    kind = type(answer).__name__
    return _NoPlan(f"TypeError: it answers with {kind}, not with a Plan or None", is_fault=True)


def _find_form_faults(plan: _Answer, window: Window) -> Iterator[str]:
    if isinstance(plan, _NoPlan) and plan.is_fault:
        yield f"plan raises {plan.text}; it may raise NothingToCompactError"
    if not isinstance(plan, Plan):
        return
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


def _find_threshold_faults(policy: Policy, window: Window, answer: _Answer) -> Iterator[str]:
    """Check that `fires` and `plan` agree on the threshold."""
    if not hasattr(policy, "fires") or (isinstance(answer, _NoPlan) and answer.is_fault):
        return
    try:
        fires: Any = is_due(policy, window)
    except Exception as error:  # noqa: BLE001 - reported to the policy's author
        yield f"fires raises {_describe_error(error)}"
        return
    if not isinstance(fires, bool):
        yield f"fires answers with {fires!r}, not with True or False"
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
    yield from _find_name_faults(policy_class)
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


def _find_name_faults(policy_class: type) -> Iterator[str]:
    name, alias = getattr(policy_class, "name", None), getattr(policy_class, "alias", None)
    words = {"name": name} if alias is None else {"name": name, "alias": alias}
    for what, word in words.items():
        if not isinstance(word, str) or not _NAME.fullmatch(word):
            yield f"its {what} is {word!r}; it takes small letters, digits, '.', '_' and '-'"


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
    if not isinstance(get_presets(policy_class), Mapping):
        yield "its presets are not a mapping of names to settings"
        return
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
