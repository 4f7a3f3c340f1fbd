"""Checks any policy against the contract between policies and the store, on sample windows."""

import json
import re
from collections.abc import Iterator
from dataclasses import MISSING, asdict, fields, replace
from itertools import product
from types import NoneType, UnionType
from typing import Any, ClassVar, Union, get_args, get_origin, get_type_hints

from ..blocks import AnyBlock, Block, ToolCall, ToolResult
from ..compaction_events import Trigger
from ..errors import CutbankError, InvalidSettingError, NothingToCompactError, describe_error
from ..item import WindowItem
from ..ranges import Ranges
from ..settings import QUIRK, list_settings
from ..token_estimate import CHARS_PER_TOKEN
from ..window import Plan, Window
from .catalog import build_with_preset
from .policy import Policy, configure_policy, find_faults, get_presets, is_due

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
    # Requests store policies by name and settings, so that the settings must survive JSON.
    if configure_policy(type(policy), {}, json.loads(json.dumps(asdict(policy)))) != policy:
        yield "it is another one when it is read back from its settings as JSON"
    for setting in list_settings(policy):
        try:
            replace(policy, **{setting.name: [None]})
        except InvalidSettingError:
            continue
        except Exception as error:  # noqa: BLE001 - anything but InvalidSettingError is a fault
            described = describe_error(error)
            yield f"{setting.name} = [None] raises {described}, not InvalidSettingError"
        else:
            yield f"{setting.name} may be [None]: call check(self) in __post_init__"
    for name, window in iter_sample_windows():
        try:
            _check_on_window(policy, window)
        except _FaultError as fault:
            yield f"{name}: {fault}"


def _check_on_window(policy: Policy, window: Window) -> None:
    """Raise _FaultError for the first fault of the policy's answers."""
    before = replace(window, items=list(window.items), hides=dict(window.hides))
    answer = _ask_for_plan(policy, window)
    if window != before:
        raise _FaultError("it changes the window")
    if _ask_for_plan(policy, before) != answer:
        raise _FaultError("it answers otherwise when it is asked again")
    fault = _find_plan_fault(answer, window) if isinstance(answer, Plan) else None
    if fault is None and hasattr(policy, "fires"):
        fault = _find_threshold_fault(policy, window, answer)
    if fault is not None:
        raise _FaultError(fault)


def _ask_for_plan(policy: Policy, window: Window) -> Plan | str | None:
    """Return the plan, or None, or the reason why there is none."""
    try:
        answer: Any = policy.plan(window)
    except NothingToCompactError as nothing:
        return str(nothing)
    except Exception as error:
        # It may raise anything; the report shows its author what.
        why = "it may raise NothingToCompactError"
        raise _FaultError(f"plan raises {describe_error(error)}; {why}") from error
    if answer is not None and not isinstance(answer, Plan):
        raise _FaultError(f"plan returns {type(answer).__name__}, not a Plan or None")
    return answer


def _find_plan_fault(plan: Plan, window: Window) -> str | None:
    seen = {item.position for item in window.items}
    if plan.cut is not None and not 1 <= plan.cut <= window.after + 1:
        return f"it cuts at {plan.cut}, outside the window"
    if not plan.reason.strip() or "\n" in plan.reason:
        return "its plan gives no reason of one line"
    if min(plan.summary_tokens, plan.turn_tokens) < 0:
        return "its plan has a summary of less than 0 tokens"
    if strange := sorted({trim.position for trim in plan.trims} - seen):
        return f"it shortens #{strange[0]}, which is not in the window"
    if strange := sorted(set(plan.drops) - seen):
        return f"it drops #{strange[0]}, which is not in the window"
    return None


def _find_threshold_fault(policy: Policy, window: Window, answer: Plan | str | None) -> str | None:
    """Return how `fires` and `plan` disagree on the threshold, if they do."""
    try:
        fires: Any = is_due(policy, window)
    except Exception as error:
        raise _FaultError(f"fires raises {describe_error(error)}") from error
    if not isinstance(fires, bool):
        return f"fires returns {fires!r}, not True or False"
    if window.trigger is not Trigger.THRESHOLD:
        return None
    if isinstance(answer, Plan) and not fires:
        return "it has a plan and says that it does not fire: the plan would never be used"
    asked = replace(window, trigger=Trigger.MANUAL)
    if answer is None and fires and isinstance(_ask_for_plan(policy, asked), Plan):
        return "it fires, and has no plan but where it is asked: it would fire again and again"
    return None


# The shape of a class

_NAME = re.compile(r"[a-z][a-z0-9_.-]*")
"""The names allowed for a policy, an alias or a preset, since `@` separates them."""
_SETTING_TYPES = (int, float, bool, str)
"""The types of settings that files and command lines can give."""


def find_shape_faults(policy_class: Any) -> Iterator[str]:
    """Yield the faults of the class, one line each; its behavior is not checked."""
    if not getattr(getattr(policy_class, "__dataclass_params__", None), "frozen", False):
        yield f"{getattr(policy_class, '__name__', policy_class)} is not a @dataclass(frozen=True)"
        return
    words = [("name", getattr(policy_class, "name", None))]
    words += [("alias", getattr(policy_class, "alias", None) or "none")]
    words += [("preset", name) for name in get_presets(policy_class)]
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
    for preset, values in get_presets(policy_class).items():
        try:
            # A preset need not give all required settings.
            if known.keys() - defaults.keys() <= set(values):
                configure_policy(policy_class, {}, values)
        except CutbankError as error:
            yield f"its preset @{preset} is refused: {error}"


# Windows that any policy must handle: empty, tiny, huge, pinned, open, far too full

_LIMIT = 20_000
_LIMITS = (_LIMIT, 500, 0)
"""Context sizes: enough for a policy's defaults, almost nothing, and unknown."""


class _SampleHistory:
    """A history that is built block by block; texts have the size that their blocks claim."""

    def __init__(self) -> None:
        self._items: list[WindowItem] = []
        self._turn = 0

    def add_user(self, tokens: int, **is_: bool) -> None:
        self._turn += 1
        self._add(Block.user(_make_text(tokens)), tokens, **is_)

    def add_assistant(self, tokens: int, **is_: bool) -> None:
        self._add(Block.assistant(_make_text(tokens)), tokens, **is_)

    def add_calls(self, *sizes: int | None) -> None:
        """Add one message of calls, and a result for each; None leaves a call open."""
        first = len(self._items) + 2
        self._add(Block.thinking(_make_text(40), message_id=f"message-{first}"), 40)
        for at, size in enumerate(sizes, first):
            call = ToolCall(tool_call_id=f"{at}", name="read", message_id=f"message-{first}")
            self._add(call, 20, is_open=size is None)
        for at, size in enumerate(sizes, first):
            if size is not None:
                self._add(ToolResult(tool_call_id=f"{at}", content=_make_text(size)), size, call=at)

    def _add(self, block: AnyBlock, tokens: int, call: int | None = None, **is_: bool) -> None:
        position = len(self._items) + 1
        self._items.append(WindowItem(position, block, self._turn, tokens, call, **is_))

    def make_window(self, limit: int = _LIMIT, trigger: Trigger = Trigger.MANUAL) -> Window:
        in_use = sum(item.tokens for item in self._items) + 100
        pinned = Ranges.of(item.position for item in self._items if item.is_pinned)
        items, after = list(self._items), len(self._items)
        return Window(items, after, limit=limit, trigger=trigger, in_use=in_use, pinned=pinned)


def iter_sample_windows() -> Iterator[tuple[str, Window]]:
    """Yield every sample with its description, for each trigger and each context size."""
    for (name, talk), limit, trigger in product(_iter_sample_histories(), _LIMITS, Trigger):
        held = f"a limit of {limit:,}" if limit else "no known limit"
        yield f"{name}, {held}, by {trigger}", talk.make_window(limit, trigger)


def _iter_sample_histories() -> Iterator[tuple[str, _SampleHistory]]:
    yield "an empty window", _SampleHistory()
    tiny, pinned, open_ = _SampleHistory(), _SampleHistory(), _SampleHistory()
    tiny.add_user(5)
    tiny.add_assistant(5)
    yield "a tiny window", tiny
    yield "a long window", make_long_history(12)
    yield "a huge window", make_long_history(130)
    for _ in range(30):
        pinned.add_user(900, is_pinned=True)
    yield "only pinned blocks", pinned
    open_.add_calls(*[None] * 900)
    yield "only open calls", open_
    prompt, result, broken = make_long_history(2), make_long_history(2), make_long_history(9)
    prompt.add_user(2 * _LIMIT)
    yield "a prompt larger than the limit", prompt
    result.add_user(20)
    result.add_calls(2 * _LIMIT, 30)
    yield "a last result larger than the limit", result
    broken.add_user(50)
    broken.add_assistant(9_000, is_unfinished=True)
    yield "an answer that was broken off", broken


def make_long_history(turns: int) -> _SampleHistory:
    """Return turns with prompts, thinking, parallel calls, results and answers."""
    talk = _SampleHistory()
    for turn in range(turns):
        talk.add_user(80)
        talk.add_calls(*[400, 900, 150][: turn % 4])
        talk.add_calls(600)
        talk.add_assistant(250)
    return talk


def _make_text(tokens: int) -> str:
    return ("silt and clay. " * (tokens * CHARS_PER_TOKEN // 15 + 1))[: tokens * CHARS_PER_TOKEN]
