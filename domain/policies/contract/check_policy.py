"""What every policy owes the store, whoever wrote it: `check_policy` tries it on sample windows."""

import json
from collections.abc import Iterator
from dataclasses import MISSING, asdict, replace
from typing import Any

from ...compaction_events import Trigger
from ...coverage import Settlement, settle
from ...errors import InvalidSettingError, NothingToCompactError
from ...window import Plan, Window
from ..policy import Policy, configured, is_due, presets_of, settings_of
from .sample_windows import after, windows
from .shape import faults_of

MOST_ROUNDS = 20
"""How often a view that nothing was added to may be compacted, one time upon the other."""
ASKED_ROUNDS = 3
LEAST_GAIN = 0.1
"""What the store wants a compaction that nobody asked for to save, unless told otherwise."""
MOST_TOLD = 20


def check_policy(policy: Policy | type[Policy]) -> None:
    """Raise AssertionError, which names all that is wrong, unless the policy keeps the contract.

    Of a class, its defaults and all of its presets are checked; of a value, these settings. How
    long it takes is not looked at.
    """
    policy_class = policy if isinstance(policy, type) else type(policy)
    broken = [f"{policy_class.__name__}: {fault}" for fault in faults_of(policy_class)]
    if not broken:
        every = _every(policy) if isinstance(policy, type) else [(policy.name, policy)]
        broken = [f"{name}: {fault}" for name, one in every for fault in _broken(one)]
    if broken:
        more = [f"... and {len(broken) - MOST_TOLD:,} more"] if len(broken) > MOST_TOLD else []
        raise AssertionError("\n".join([*broken[:MOST_TOLD], *more]))


def _every(policy_class: type[Policy]) -> Iterator[tuple[str, Policy]]:
    """The policy by its defaults and by each preset; not where settings are missing yet."""
    required = {one.name for one in settings_of(policy_class) if one.default is MISSING}
    if not required:
        yield policy_class.name, configured(policy_class, {})
    for preset, settings in presets_of(policy_class).items():
        if required <= set(settings):
            yield f"{policy_class.name}@{preset}", configured(policy_class, settings)


def _broken(policy: Policy) -> Iterator[str]:
    yield from _as_a_value(policy)
    for name, window in windows():
        for fault in _on(policy, window):
            yield f"{name}: {fault}"


def _as_a_value(policy: Policy) -> Iterator[str]:
    """A request is recorded with its policy, by name and settings, and picked up by others."""
    try:
        read = json.loads(json.dumps(asdict(policy)))
    except (TypeError, ValueError) as error:
        yield f"its settings are not JSON: {error}"
        return
    if configured(type(policy), read) != policy:
        yield "it is another one when it is read back from its settings as JSON"
    for setting in settings_of(policy):
        try:
            replace(policy, **{setting.name: [None]})
        except InvalidSettingError:
            continue
        except Exception as error:  # noqa: BLE001 - whatever it raises, it is not what it ought to
            yield f"{setting.name} = [None] raises {_named(error)}, not InvalidSettingError"
        else:
            yield f"{setting.name} may be [None]: call check(self) in __post_init__"


def _on(policy: Policy, window: Window) -> Iterator[str]:
    """What is wrong with the answer to a window, and to those that follow once it was carried out.

    Compacted again and again, with nothing said in between, a view is small enough at last; who
    asks for it may go on for longer than is tried here.
    """
    is_asked = window.trigger in {Trigger.MANUAL, Trigger.OVERFLOW}
    least, rounds = (0.0, ASKED_ROUNDS) if is_asked else (LEAST_GAIN, MOST_ROUNDS)
    for generation in range(1, rounds + 1):
        answer, faults = _answered(policy, window)
        yield from faults
        settlement = _settled(answer, window) if isinstance(answer, Plan) else None
        if faults or settlement is None:
            return
        smaller = after(window, settlement, generation)
        if window.tokens - smaller.tokens <= least * (window.tokens - window.request):
            return
        window = smaller
    if not is_asked:
        yield f"after {rounds} compactions one upon the other it wants another one"


def _answered(policy: Policy, window: Window) -> "tuple[Answer, list[str]]":
    """The answer to a window, and what is wrong with it."""
    before = replace(window, items=list(window.items), hides=dict(window.hides))
    answer = _answer(policy, window)
    faults = []
    if window != before:
        faults.append("it changes the window")
    elif not _is_same(_answer(policy, before), answer):
        faults.append("it answers otherwise when it is asked again")
    if isinstance(answer, BaseException):
        faults.append(f"plan raises {_named(answer)}; it may raise NothingToCompactError")
    if isinstance(answer, Plan):
        faults += _ill_formed(answer, window)
        faults += _unsettled(answer, window)
    return answer, [*faults, *_unlike(policy, window, answer)]


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, BaseException) and isinstance(other, BaseException):
        return _named(one) == _named(other)
    return bool(one == other)


Answer = Plan | str | BaseException | None
"""A plan, why there is none, or what it must not raise."""


def _answer(policy: Policy, window: Window) -> Any:
    try:
        answer = policy.plan(window)
    except NothingToCompactError as nothing:
        return str(nothing)
    except Exception as error:  # noqa: BLE001 - told to whoever wrote it
        return error
    if answer is not None and not isinstance(answer, Plan):
        return TypeError(f"it answers with {type(answer).__name__}, not with a Plan or None")
    return answer


def _ill_formed(plan: Plan, window: Window) -> Iterator[str]:
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


def _unsettled(plan: Plan, window: Window) -> Iterator[str]:
    settlement = _settled(plan, window)
    if settlement is None:
        return
    kept, standing = settlement.kept, {item.position: item for item in window.items}
    for item in standing.values():
        is_kept = item.position in kept
        if not is_kept and (item.is_pinned or item.is_open):
            yield f"#{item.position} leaves, which is {'pinned' if item.is_pinned else 'open'}"
        if not is_kept and item.position not in settlement.covers:
            yield f"#{item.position} leaves, and no summary stands for it"
        if item.call in standing and is_kept != (item.call in kept):
            yield f"#{item.position} is parted from its call"
    if window.items and not kept:
        yield "nothing is left of the view"


def _settled(plan: Plan, window: Window) -> Settlement | None:
    try:
        return settle(window, plan)
    except NothingToCompactError:
        return None


def _unlike(policy: Policy, window: Window, answer: Answer) -> Iterator[str]:
    """`fires` and `plan` speak of the same threshold."""
    if not hasattr(policy, "fires") or isinstance(answer, BaseException):
        return
    try:
        fires: Any = is_due(policy, window)
    except Exception as error:  # noqa: BLE001 - told to whoever wrote it
        yield f"fires raises {_named(error)}"
        return
    if not isinstance(fires, bool):
        yield f"fires answers with {fires!r}, not with True or False"
    elif isinstance(answer, Plan) and window.trigger is Trigger.THRESHOLD and not fires:
        yield "it has a plan, and says that it does not fire: nobody would ask for the plan"
    elif answer is None and window.trigger is Trigger.THRESHOLD and fires:
        asked = replace(window, trigger=Trigger.MANUAL)
        if isinstance(_answer(policy, asked), Plan):
            yield "it fires, and has no plan but where it is asked: it would fire again and again"


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
