"""Settings are searched on one half of the sessions, and have to hold on the other half."""

import tomllib
from dataclasses import replace

import optuna
import pytest

from cutbank import (
    BacktestError,
    InvalidSettingError,
    SessionStore,
    get_policy,
    tune,
)
from cutbank.adapters.analysis.backtest.tuning import (
    Objective,
    TuningResult,
    TuningTrial,
    list_searched,
    sample_settings,
    split_sessions,
)
from cutbank.adapters.interfaces.commands.tune import print_result, write_settings
from cutbank.domain.backtest_cell import Setup
from cutbank.domain.backtest_comparison import Metric, SetupDifference
from cutbank.domain.policies.catalog import POLICIES
from cutbank.domain.policies.policy import find_faults

from .conftest import talk

LIMIT = 1_500


@pytest.fixture
def many(store: SessionStore) -> SessionStore:
    """Fourteen sessions, so that each half has enough for a verdict."""
    for number in range(14):
        talk(store, f"session-{number}", 6)
    return store


def test_each_session_is_in_one_half_whatever_their_order(many: SessionStore) -> None:
    sessions = many.sessions()

    first, second = split_sessions(sessions)
    shuffled = sessions[5:] + sessions[:5][::-1]

    names = [{one.key for one in half} for half in (first, second)]
    assert [len(half) for half in names] == [7, 7]
    assert names[0] | names[1] == {one.key for one in sessions}
    assert [[one.key for one in half] for half in split_sessions(shuffled)] == [
        [one.key for one in half] for half in (first, second)
    ]


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "combine"])
def test_whatever_is_tried_is_a_value_that_the_setting_takes(name: str) -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    policy = POLICIES[name]
    known = list_searched(policy)

    for _ in range(20):
        settings = dict(sample_settings(study.ask(), known))
        assert set(settings) == {one.name for one in known}
        assert find_faults(policy, settings) == []


@pytest.mark.slow
def test_what_costs_less_is_found_and_borne_out_by_the_other_half(many: SessionStore) -> None:
    done: list[tuple[int, int]] = []

    found = tune(
        many,
        "newest-messages",
        limit=LIMIT,
        trials=8,
        progress=lambda *counts: done.append(counts),
    )

    default, *others = found.trials
    assert not default.settings
    assert found.cost_unit == "prompt tokens"
    assert min(one.cost for one in others) < default.cost
    assert found.is_better
    assert [one.metric for one in found.differences] == [Metric.TOKENS, Metric.REFUSED]
    assert not set(found.searched) & set(found.judged)
    assert done == [(number, 8) for number in range(9)]
    again = tune(many, "newest-messages", limit=LIMIT, trials=8)
    assert again.trials == found.trials, "the same sessions give the same search"


def test_the_defaults_alone_are_not_better_than_themselves(many: SessionStore) -> None:
    found = tune(many, "newest-messages", limit=LIMIT, trials=1)

    assert (found.settings, found.differences, found.is_better) == ({}, (), False)


def test_settings_that_contradict_each_other_are_not_measured(store: SessionStore) -> None:
    for key in ("a", "b"):
        talk(store, key, 2)

    found = tune(store, "preserve-zone", limit=LIMIT, trials=10)

    tried = [one.settings for one in found.trials[1:]]
    assert 0 < len(tried) < 9
    assert all(one["preserve_ratio"] < one["threshold"] for one in tried)


def test_where_too_little_is_at_stake_fidelity_is_not_searched(store: SessionStore) -> None:
    for key in ("a", "b"):
        talk(store, key, 2)

    for objective in ("fidelity", "pareto"):
        with pytest.raises(BacktestError, match="at 32,000 tokens too little is at stake for F3"):
            tune(store, "pi", objective=objective, trials=2)


def difference(metric: Metric, low: float, high: float) -> SetupDifference:
    setup = Setup(policy="pi", limit=LIMIT)
    return SetupDifference(metric, setup, setup, 9, (low + high) / 2, (low, high))


@pytest.mark.parametrize(
    ("differences", "is_better"),
    [
        ([difference(Metric.COST, -0.4, -0.1)], True),
        ([difference(Metric.COST, -0.4, 0.1)], False),
        ([difference(Metric.COST, -0.4, -0.1), difference(Metric.REFUSED, 0.1, 0.2)], False),
        ([difference(Metric.F3, 0.1, 0.2), difference(Metric.COST, -0.1, 0.1)], True),
        ([difference(Metric.F3, -0.1, 0.2), difference(Metric.COST, -0.2, -0.1)], False),
    ],
)
def test_better_is_what_the_other_half_bears_out_and_nothing_speaks_against(
    differences: list[SetupDifference], *, is_better: bool
) -> None:
    found = TuningResult(
        "pi", Objective.COST, LIMIT, (), (), (), "usd", {"keep_tokens": 7}, tuple(differences)
    )

    assert found.is_better is is_better


@pytest.mark.parametrize(
    ("differences", "said"),
    [
        ([], "beats the defaults."),
        ([difference(Metric.F3, -0.1, 0.2)], "beats the defaults on the other half."),
        (
            [replace(difference(Metric.F3, 0.1, 0.2), sessions=2)],
            "beats the defaults on the other half: 2 sessions tell nothing, 6 or more may.",
        ),
    ],
)
def test_it_says_why_nothing_is_better_and_lists_the_best_by_the_objective(
    capsys: pytest.CaptureFixture[str], differences: list[SetupDifference], said: str
) -> None:
    trials = [TuningTrial({"keep_tokens": f3} if f3 else {}, f3, f3 / 10, 0) for f3 in range(9)]
    found = TuningResult(
        "pi", Objective.FIDELITY, LIMIT, (), (), tuple(trials), "usd", {}, tuple(differences)
    )

    print_result(found, None)

    answer = capsys.readouterr().out
    assert answer.endswith(f"Nothing that was tried {said}\n")
    listed = [word for word in answer.split() if word.startswith("keep_tokens")]
    assert listed == [f"keep_tokens={best}" for best in (8, 7, 6, 5)]


def test_the_file_holds_what_was_found() -> None:
    settings = {"prune_over": None, "threshold": 0.75, "preserve_recent": 3}
    found = TuningResult("preserve-zone", Objective.COST, LIMIT, (), (), (), "usd", settings)

    lines = "\n".join(write_settings(found))

    loaded = tomllib.loads(lines)
    assert loaded["compaction"]["policy"] == "preserve-zone"
    given = loaded["compaction"]["settings"]
    assert get_policy("preserve-zone", **given) == get_policy("preserve-zone", **settings)


def test_what_cannot_be_searched_is_refused_before_anything_is_measured(
    store: SessionStore,
) -> None:
    talk(store, "only", 2)

    for policy, objective, trials, wrong in [
        ("pi", "beauty", 3, "'beauty' is no objective: choose cost, fidelity, pareto"),
        ("nowhere", "cost", 3, "no policy 'nowhere'"),
        ("combine", "cost", 3, "combine has no settings to search"),
        ("pi", "cost", 0, "0 trials try nothing"),
    ]:
        with pytest.raises(InvalidSettingError, match=wrong):
            tune(store, policy, objective=objective, trials=trials)
    with pytest.raises(BacktestError, match="1 sessions have no two halves"):
        tune(store, "pi")
