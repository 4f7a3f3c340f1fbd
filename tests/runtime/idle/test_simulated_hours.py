"""Hours of simulated time: what rests is compacted once, when it may be, whatever else happens."""

from dataclasses import replace
from datetime import time, timedelta
from itertools import cycle
from typing import Any, get_args
from zoneinfo import ZoneInfo

from hypothesis import example, given, settings
from hypothesis import strategies as st
from simulated import FULL, RULES, Action, Simulation, What

from cutbank.domain.idle_rules import QuietHours

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
few = settings(max_examples=5)


worlds = st.one_of(
    st.fixed_dictionaries({"workers": st.just(2), "own_files": st.booleans()}),
    st.fixed_dictionaries(
        {"failures": st.dictionaries(st.sampled_from(KEYS), st.integers(1, 7), max_size=3)}
    ),
)


@settings(max_examples=15)
@given(
    actions=actions,
    world=worlds,
    late=st.lists(st.sampled_from([-20, -1, 0, 5, 29, 400]), min_size=1),
    attempts=st.integers(1, 4),
)
@example([Action("a", 1, "say", 2 * FULL), Action("a", 1, "wake", 30)], {}, [0], 3)
def test_whatever_rests_is_compacted_when_it_is_due_and_once(
    actions: list[Action], world: dict[str, Any], late: list[int], attempts: int
) -> None:
    """Looks come late, early or twice; what fails is tried again, and written by rules at last."""
    with Simulation(replace(RULES, attempts=attempts), **world) as simulation:
        turns = cycle(late)
        simulation.late = lambda: next(turns)
        for action in actions:
            simulation.run(action)
            simulation.look()
            simulation.look()
        simulation.pass_time(3_600)
        simulation.check_all_done()


@few
@given(
    actions=actions,
    jumps=st.lists(st.sampled_from([0, 30, 3_600, 86_400, -30, -3_600, -86_400]), min_size=1),
)
def test_a_clock_that_jumps_makes_nobody_touch_what_is_not_at_rest(
    actions: list[Action], jumps: list[int]
) -> None:
    with Simulation() as simulation:
        for action, jump in zip(actions, cycle(jumps), strict=False):
            simulation.run(action)
            simulation.jump(jump)
        back = sum(-jump for jump in jumps if jump < 0) * len(actions)
        simulation.jump(back)
        simulation.pass_time(7_200)
        simulation.check_all_done()


@few
@given(
    actions=actions,
    begins=st.integers(0, 23),
    hours=st.integers(1, 23),
    zone=st.sampled_from(["UTC", "Asia/Kolkata", "America/New_York"]),
)
def test_nothing_is_begun_in_quiet_hours_and_all_of_it_after(
    actions: list[Action], begins: int, hours: int, zone: str
) -> None:
    quiet = QuietHours(time(begins), time((begins + hours) % 24), ZoneInfo(zone))
    with Simulation(replace(RULES, quiet_hours=quiet)) as simulation:
        simulation.run(*actions)
        rest = simulation.clock.now + timedelta(hours=2)
        over = simulation.rules.find_resume_time(rest) or rest
        simulation.pass_time((over - simulation.clock.now).total_seconds())
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
        assert len(simulation.done) == len(keys)
        assert len(simulation.summarizer.spent) == len(keys)


@settings(max_examples=3)
@given(
    actions=actions,
    failures=st.dictionaries(st.sampled_from(KEYS), st.integers(1, 3)),
    restarts=st.lists(st.sampled_from(["", "worker", "rebuild", "delete"]), min_size=1),
    hourly=st.sampled_from([None, 0.3, 1.0]),
)
def test_restarts_and_new_read_models_change_nothing(
    actions: list[Action], failures: dict[str, int], restarts: list[str], hourly: float | None
) -> None:
    rules = replace(RULES, hourly_usd=hourly)
    done = []
    for hows in (restarts, [""]):
        with Simulation(rules, failures=failures) as simulation:
            for action, how in zip(actions, cycle(hows), strict=False):
                simulation.run(action)
                if how:
                    simulation.restart(how)
                simulation.pass_time(200)
                if how:
                    simulation.restart(how)
            simulation.pass_time(3 * 3_700)
            done.append(sorted(simulation.done, key=lambda one: (one[1], one[0])))

    assert done[0] == done[1]
