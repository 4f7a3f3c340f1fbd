"""Hours of simulated time: what rests is compacted once, when it may be, whatever else happens."""

from dataclasses import replace
from datetime import time, timedelta
from functools import partial
from itertools import cycle
from typing import Any, get_args
from zoneinfo import ZoneInfo

from hypothesis import example, given, settings
from hypothesis import strategies as st
from simulated import FULL, RULES, Action, Simulation, What

from cutbank.domain.idle_rules import IdleRules, QuietHours

KEYS = ("a", "b", "c", "d")
PAUSES = (1, 20, 299, 300, 301, 330, 600, 2_000, 4_000)

actions = st.lists(
    st.builds(
        Action,
        key=st.sampled_from(KEYS),
        after_s=st.sampled_from(PAUSES),
        what=st.sampled_from(["say"] * 6 + list(get_args(What))),
        much=st.integers(1, 2 * FULL),
    ),
    min_size=3,
    max_size=12,
)
worlds = st.one_of(
    st.just({"workers": 2}),
    st.fixed_dictionaries(
        {"failures": st.dictionaries(st.sampled_from(KEYS), st.integers(1, 7), max_size=3)}
    ),
)
rules = st.builds(
    replace,
    st.just(RULES),
    attempts=st.integers(1, 4),
    quiet_hours=st.none()
    | st.builds(
        lambda begins, hours, zone: QuietHours(
            time(begins), time((begins + hours) % 24), ZoneInfo(zone)
        ),
        st.integers(0, 23),
        st.integers(1, 23),
        st.sampled_from(["UTC", "Asia/Kolkata", "America/New_York"]),
    ),
)


lates = st.lists(st.sampled_from([-20, -1, 0, 5, 29, 400]), min_size=1)
jumps = st.lists(st.sampled_from([0, 0, 30, 3_600, 86_400, -30, -3_600, -86_400]), min_size=1)


@settings(max_examples=8)
@given(actions=actions, rules=rules, world=worlds, late=lates, jump=jumps)
@example([Action("a", 1, "say", 2 * FULL), Action("a", 1, "wake", 30)], RULES, {}, [0], [0])
def test_whatever_rests_is_compacted_when_it_is_due_and_once(
    actions: list[Action], rules: IdleRules, world: dict[str, Any], late: list[int], jump: list[int]
) -> None:
    """Looks come late, early or twice, workers are replaced, and clocks are set.

    What fails is tried again, and written by rules at last.
    """
    with Simulation(rules, **world) as simulation:
        simulation.late = partial(next, cycle(late))
        is_set = rules.quiet_hours is None and len(simulation.workers) == 1
        back = 0
        for number, (action, by) in enumerate(zip(actions, cycle(jump), strict=False)):
            simulation.run(action)
            simulation.look()
            if number % 3 == 2:
                simulation.restart(0)
            if is_set:
                simulation.jump(by)
                back += max(-by, 0)
        simulation.jump(back)
        rest = simulation.clock.now + timedelta(hours=2)
        over = rules.find_resume_time(rest) or rest
        # Hours that are not quiet last for an hour or more.
        simulation.pass_time((over - simulation.clock.now).total_seconds() + 3_000)
        simulation.check_all_done()


@settings(max_examples=3)
@given(
    pauses=st.lists(st.sampled_from([1, 20, 299, 400]), min_size=6, max_size=6),
    hourly=st.sampled_from([0.1, 0.3, 0.5, 1.0]),
)
def test_an_hour_costs_no_more_than_it_may_and_what_ran_when_that_was_reached(
    pauses: list[int], hourly: float
) -> None:
    keys = [f"s{number}" for number in range(len(pauses))]
    with Simulation(replace(RULES, hourly_usd=hourly)) as simulation:
        for key, pause in zip(keys, pauses, strict=True):
            simulation.run(Action(key, pause, "say", 2 * FULL))
        simulation.pass_time(len(keys) * 3_700)
        simulation.check_all_done()
        assert len(simulation.summarizer.spent) == len(keys)
