"""Searches a policy's settings on one half of the sessions, and judges them on the other half."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ....domain.backtest_cell import SetupTotal, compute_totals
from ....domain.backtest_comparison import (
    ComparisonVerdict,
    Metric,
    SetupDifference,
    compare_cells,
)
from ....domain.errors import BacktestError, InvalidSettingError, NotFoundError
from ....domain.hooks import Progress
from ....domain.policies.policy import Policy
from ....domain.settings import SettingInfo, list_settings
from ...runtime.sessions.session_store import SessionStore
from ...runtime.sessions.stored_session import StoredSession
from ...settings.policy_catalog import get_policy
from .backtest import backtest

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import Trial as OptunaTrial

_OPTUNA_MISSING = "optuna is not installed: pip install 'cutbank[tune]'"
_RANGE = 4
"""Numbers without bounds are tried from a part of the default to a multiple, by this factor."""
_SEED = 1
"""Fixed, so that the same sessions give the same search."""


class Objective(StrEnum):
    COST = "cost"
    """The lowest cost; where a price is unknown, the fewest tokens of prompts."""
    FIDELITY = "fidelity"
    """The highest F3."""
    PARETO = "pareto"
    """The highest F3 of all that cost no more than the defaults."""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The measures that have to be better, the first one, and not worse, the others."""
        return {
            Objective.COST: (Metric.COST, Metric.REFUSED),
            Objective.FIDELITY: (Metric.F3, Metric.REFUSED),
            Objective.PARETO: (Metric.F3, Metric.COST, Metric.REFUSED),
        }[self]


@dataclass(frozen=True, slots=True)
class TuningTrial:
    """Settings that were tried, and what they gave on the first half."""

    settings: Mapping[str, Any]
    cost: float
    """In the result's unit."""
    f3: float
    refused: int


@dataclass(frozen=True, slots=True)
class TuningResult:
    """What a search found, and whether it holds on sessions that it did not see."""

    policy: str
    objective: Objective
    limit: int
    searched: tuple[str, ...]
    """The sessions that were searched on, by namespace and name."""
    judged: tuple[str, ...]
    """The sessions that the answer was judged on."""
    trials: tuple[TuningTrial, ...]
    """In the order in which they were tried; the defaults come first."""
    cost_unit: str
    """`usd` if the prices of all sessions are known, else `prompt tokens`."""
    settings: Mapping[str, Any]
    """The best settings of the search."""
    differences: tuple[SetupDifference, ...] = field(default=())
    """From the defaults, on the sessions that were judged; empty if these were the best."""

    @property
    def is_better(self) -> bool:
        """Whether the other half bears out that these settings beat the defaults."""
        if not self.differences:
            return False
        first, *others = (one.verdict for one in self.differences)
        return first is ComparisonVerdict.BETTER and ComparisonVerdict.WORSE not in others


def tune(
    store: SessionStore,
    policy: str,
    *,
    objective: Objective | str = Objective.COST,
    sessions: Sequence[StoredSession] | None = None,
    limit: int = 32_000,
    trials: int = 30,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> TuningResult:
    """Search the settings of `policy` (`NAME[@PRESET]`) that are best for recorded sessions.

    They are searched on one half of the sessions, all or `sessions`, with backtests at `limit`
    tokens of a prompt, and judged on the other half; a session's name decides its half. Settings
    under which more prompts are refused than by default are passed over. `trials` settings are
    tried, the defaults among them; `jobs` processes measure each, as in `backtest`. `progress` is
    called with how many were tried, and of how many. Nothing is written.

    Raises InvalidSettingError for a policy or objective that does not exist, and a policy that has
    nothing to search; NotFoundError without Optuna; BacktestError for fewer than two sessions, or
    where too little is at stake for F3, unless the objective is the cost.
    """
    check_optuna()
    if objective not in set(Objective):
        raise InvalidSettingError(f"{objective!r} is no objective: choose {', '.join(Objective)}")
    if trials < 1:
        raise InvalidSettingError(f"{trials} trials try nothing: give 1 or more")
    default = get_policy(policy)
    known = list_searched(default)
    if not known:
        raise InvalidSettingError(f"{policy} has no settings to search")
    halves = split_sessions(store.sessions() if sessions is None else sessions)
    with TemporaryDirectory(prefix="cutbank-tune-") as folder:
        bench = _Bench(store, policy, limit, jobs, Path(folder, "cache.db"))
        search = _Search(bench, default, known, halves[0], Objective(objective))
        best = search.run(trials, progress or (lambda *_: None))
        metrics = search.list_judged_metrics()
        differences = tuple(bench.compare(halves[1], best, metrics)) if best else ()
    return TuningResult(
        policy=policy,
        objective=Objective(objective),
        limit=limit,
        searched=tuple(map(_name_session, halves[0])),
        judged=tuple(map(_name_session, halves[1])),
        trials=tuple(search.tried),
        cost_unit=search.cost_unit,
        settings=best,
        differences=differences,
    )


def check_optuna() -> None:
    """Raise NotFoundError if the library that searches is not installed."""
    if find_spec("optuna") is None:
        raise NotFoundError(_OPTUNA_MISSING)


def split_sessions(
    sessions: Sequence[StoredSession],
) -> tuple[list[StoredSession], list[StoredSession]]:
    """Return two halves, in an order that only the sessions' names decide."""
    if len(sessions) < 2:
        raise BacktestError(f"{len(sessions)} sessions have no two halves: import more of them")
    ordered = sorted(sessions, key=lambda one: blake2b(_name_session(one).encode()).digest())
    return ordered[::2], ordered[1::2]


def _name_session(session: StoredSession) -> str:
    return f"{session.namespace}/{session.key}"


@dataclass(frozen=True, slots=True)
class _Bench:
    """Measures settings of one policy by backtests."""

    store: SessionStore
    policy: str
    limit: int
    jobs: int | None
    cache: Path

    def measure(self, sessions: Sequence[StoredSession], settings: Mapping[str, Any]) -> SetupTotal:
        found = backtest(
            self.store,
            [self.policy],
            sessions=sessions,
            limits=(self.limit,),
            settings={name: [value] for name, value in settings.items()},
            jobs=self.jobs,
            cache=self.cache,
        )
        (total,) = compute_totals(found)
        if not total.sessions:
            why = next(iter(found.skipped.values()), "no session could be measured")
            raise BacktestError(f"there is nothing to search on: {why}")
        return total

    def compare(
        self,
        sessions: Sequence[StoredSession],
        settings: Mapping[str, Any],
        metrics: Sequence[Metric],
    ) -> Iterator[SetupDifference]:
        """Yield the differences of settings from the defaults."""
        against, found = self.measure(sessions, {}), self.measure(sessions, settings)
        for metric in metrics:
            yield compare_cells(metric, found.cells, against.cells)


@dataclass(slots=True)
class _Search:
    bench: _Bench
    default: Policy
    known: Sequence[SettingInfo]
    sessions: Sequence[StoredSession]
    objective: Objective
    tried: list[TuningTrial] = field(default_factory=list)
    cost_unit: str = "usd"

    def run(self, trials: int, progress: Progress) -> Mapping[str, Any]:
        """Return the best settings that were found; empty if these are the defaults."""
        import optuna  # noqa: PLC0415 - the extra `tune`

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        less, more = optuna.study.StudyDirection.MINIMIZE, optuna.study.StudyDirection.MAXIMIZE
        directions = {
            Objective.COST: [less],
            Objective.FIDELITY: [more],
            Objective.PARETO: [less, more],
        }[self.objective]
        sampler = optuna.samplers.TPESampler(seed=_SEED)
        study = optuna.create_study(directions=directions, sampler=sampler)
        progress(0, trials)
        self._measure(study, {})
        for number in range(1, trials):
            progress(number, trials)
            asked = study.ask()
            settings = dict(sample_settings(asked, self.known))
            try:
                get_policy(self.bench.policy, **settings)
            except InvalidSettingError:
                # These contradict each other.
                study.tell(asked, state=optuna.trial.TrialState.PRUNED)
            else:
                self._measure(study, settings, asked)
        progress(trials, trials)
        return self._pick_best().settings

    def _measure(
        self, study: "Study", settings: Mapping[str, Any], asked: "OptunaTrial | None" = None
    ) -> None:
        total = self.bench.measure(self.sessions, settings)
        if not self.tried and len(total.priced_cells) < len(total.cells):
            self.cost_unit = "prompt tokens"
        is_priced = self.cost_unit == "usd"
        cost = (total.usd or 0.0) if is_priced else float(total.bill.prompt_tokens)
        f3 = total.canonical.f3
        if f3 is None and not self.tried and self.objective is not Objective.COST:
            raise BacktestError(
                f"at {self.bench.limit:,} tokens too little is at stake for F3:"
                f" give a lower limit, or the objective {Objective.COST}"
            )
        refused = total.sum_field("refused") + len(total.failed)
        found = TuningTrial(settings, cost, f3 or 0.0, refused)
        self.tried.append(found)
        if asked is not None:
            # Above 0 is no solution.
            asked.set_constraint("more refused", found.refused - self.tried[0].refused)
            values = {
                Objective.COST: [found.cost],
                Objective.FIDELITY: [found.f3],
                Objective.PARETO: [found.cost, found.f3],
            }[self.objective]
            study.tell(asked, values)

    def list_judged_metrics(self) -> list[Metric]:
        """Return the objective's measures; of the cost, the one that was searched by."""
        cost = Metric.COST if self.cost_unit == "usd" else Metric.TOKENS
        return [cost if one is Metric.COST else one for one in self.objective.metrics]

    def _pick_best(self) -> TuningTrial:
        default = self.tried[0]
        fair = [one for one in self.tried if one.refused <= default.refused]
        if self.objective is Objective.COST:
            return min(fair, key=lambda one: one.cost)
        if self.objective is Objective.PARETO:
            fair = [one for one in fair if one.cost <= default.cost]
        return max(fair, key=lambda one: one.f3)


def list_searched(policy: Policy | type[Policy]) -> list[SettingInfo]:
    """Return the settings that can be searched: all but texts."""
    return [
        one for one in list_settings(policy) if one.among or one.value_type in {int, float, bool}
    ]


def sample_settings(
    trial: "OptunaTrial", known: Sequence[SettingInfo]
) -> Iterator[tuple[str, Any]]:
    """Yield a value for each setting, within its bounds."""
    for one in known:
        if one.among:
            yield one.name, trial.suggest_categorical(one.name, one.among)
        elif one.value_type is bool:
            yield one.name, trial.suggest_categorical(one.name, (True, False))
        else:
            if one.may_be_none and trial.suggest_categorical(f"{one.name}?", (True, False)):
                yield one.name, None
                continue
            low, high = _find_range(one)
            if one.value_type is int:
                yield one.name, trial.suggest_int(one.name, int(low), int(high))
            else:
                yield one.name, round(trial.suggest_float(one.name, low, high), 3)


def _find_range(known: SettingInfo) -> tuple[float, float]:
    """Return the bounds of a number: its own, or around its default."""
    usual = known.default if isinstance(known.default, int | float) else 0
    if not usual:
        usual = 8_000 if known.unit in {"tokens", "characters"} else 4
    low, high = usual / _RANGE, usual * _RANGE
    if known.value_type is float and known.least is not None and known.most is not None:
        low, high = known.least, known.most
    low = low if known.least is None else max(low, known.least)
    high = high if known.most is None else min(high, known.most)
    return (low, high) if low <= high else (high, high)
