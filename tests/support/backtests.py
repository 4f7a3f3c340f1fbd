"""Backtests made by hand and by Hypothesis, for those who read what one measured."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from cutbank import BacktestResult
from cutbank.domain.backtest_cell import Bill, Cell, CellOutcome, ControlResult, MissedFact, Setup
from cutbank.domain.fidelity.rows import Scores


def setup(policy: str = "pi", limit: int = 16_000, **settings: Any) -> Setup:
    return Setup(policy=policy, limit=limit, **settings)


def bill(tokens: int = 1_000, usd: float | None = 1.0, rewritten: int = 0) -> Bill:
    half = None if usd is None else usd / 2
    return Bill(
        prompt_tokens=tokens,
        written_tokens=tokens,
        rewritten_tokens=rewritten,
        prompt_usd=half,
        uncached_usd=usd,
        summaries_usd=0.0,
        output_usd=half,
    )


def scores(stakes: int = 10, hits: int = 5, **more: int) -> Scores:
    counts = {"context_hits": hits // 2, "pairs": stakes, "pair_hits": hits // 2} | more
    return Scores(boundaries=1, stakes=stakes, hits=hits, **counts)


def cell(session: str, of: Setup, **fields: Any) -> Cell:
    """A session that took 10 calls, unless `fields` say otherwise."""
    known: dict[str, Any] = {
        "namespace": "default",
        "source": "claude-code",
        "blocks": 20,
        "calls": 10,
        "bill": bill(),
        "canonical": scores(),
        "context": tuple(range(100, 1_100, 100)),
        "seconds": 0.25,
    }
    return Cell(session=session, setup=of, **(known | fields))


def control(session: str, name: str, limit: int = 16_000, **fields: Any) -> ControlResult:
    return ControlResult(
        session=session, namespace="default", source="claude-code", limit=limit, name=name, **fields
    )


def measured(*cells: Cell, **fields: Any) -> BacktestResult:
    setups: list[Setup] = []
    for one in cells:
        if one.setup not in setups:
            setups.append(one.setup)
    return BacktestResult(setups=tuple(setups), cells=cells, **fields)


def told_apart(sessions: int = 8) -> BacktestResult:
    """Two limits, three setups, one of which fails once; `pi` costs less and loses more."""
    cells: list[Cell] = []
    for number in range(sessions):
        name = f"session-{number}"
        for limit in (16_000, 32_000):
            none = setup("none", limit)
            pi = setup("pi", limit, budget=500)
            rolling = setup("rolling-timeline", limit, settings={"keep": [1, "a"]}, budget=2_000)
            cells += [
                cell(name, none, bill=bill(9_000 + number, 9.0), canonical=scores(10, 10)),
                cell(
                    name,
                    pi,
                    bill=bill(4_000 + number, 4.0, rewritten=300),
                    canonical=scores(10, 3 + number % 2),
                    compactions=2,
                    boundaries=(4, 8),
                    by_trigger={"threshold": 2},
                    repairs={"tool-pair": 1},
                    broken=1,
                    orphaned=2,
                    refused=1,
                    lost=(
                        MissedFact(key="src/a.py", kind="path", call=7, position=12 + number),
                        MissedFact(key="E0308", kind="error", call=9, position=3),
                    ),
                ),
                cell(name, rolling, bill=bill(5_000 + number, 5.0), compactions=1, boundaries=(5,))
                if number
                else Cell(
                    session=name,
                    namespace="default",
                    source="claude-code",
                    setup=rolling,
                    outcome=CellOutcome.FAILED,
                    why="rolling-timeline failed at call 3",
                ),
            ]
    controls = (
        control(f"session-{number}", name, limit, **fields)
        for number in range(sessions)
        for limit in (16_000, 32_000)
        for name, fields in CONTROLS
    )
    return measured(
        *cells, controls=tuple(controls), skipped={"empty": "it has no calls of a model"}
    )


CONTROLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("full history", {"scores": scores(10, 10)}),
    ("drop", {"scores": scores(10, 0)}),
    ("random ledger", {"budget": 500, "scores": scores(10, 2)}),
    ("random ledger", {"budget": 2_000, "scores": scores(10, 5)}),
    ("bound", {"budget": 500, "bound": 7.5}),
    ("bound", {"budget": 2_000, "bound": 10.0}),
)

names = st.text(max_size=12) | st.sampled_from(("</script>", "<!--", "a'b\"c", "\x1b[2J", "\n"))
counts = st.integers(0, 10**9)
small = st.integers(0, 50)
# To the millionth: no bill is of 1e-308 dollars, by which nothing can be divided.
dollars = st.none() | st.floats(0, 1e4, allow_nan=False).map(lambda amount: round(amount, 6))


@st.composite
def some_scores(draw: st.DrawFn) -> Scores:
    wholes = {
        "stakes": ("hits", "context_hits"),
        "pairs": ("pair_hits",),
        "hard_stakes": ("hard_hits",),
        "modified": ("modified_named",),
        "constraints": ("constraints_kept",),
    }
    found: dict[str, int] = {}
    for whole, parts in wholes.items():
        found[whole] = draw(small)
        for part in parts:
            found[part] = draw(st.integers(0, found[whole]))
    return Scores(**found)


@st.composite
def some_cells(draw: st.DrawFn, of: Setup, session: str) -> Cell:
    context = draw(st.lists(st.integers(0, 10**6), max_size=30))
    lost = st.builds(MissedFact, key=names, kind=names, call=small, position=small)
    return Cell(
        session=session,
        namespace=draw(st.sampled_from(("default", "other"))),
        source=draw(st.none() | names),
        setup=of,
        outcome=draw(st.sampled_from((CellOutcome.DONE, CellOutcome.DONE, *CellOutcome))),
        why=draw(names),
        calls=len(context),
        compactions=draw(small),
        refused=draw(small),
        broken=draw(small),
        repairs=draw(st.dictionaries(names, small, max_size=2)),
        bill=Bill(
            prompt_tokens=draw(counts),
            rewritten_tokens=draw(counts),
            prompt_usd=draw(dollars),
            uncached_usd=draw(dollars),
            summaries_usd=draw(dollars),
            output_usd=draw(dollars),
        ),
        canonical=draw(some_scores()),
        lost=tuple(draw(st.lists(lost, max_size=3))),
        context=tuple(context),
        boundaries=tuple(draw(st.lists(st.integers(1, 30), max_size=3))),
        seconds=draw(st.floats(0, 1e3)),
    )


@st.composite
def some_measured(draw: st.DrawFn) -> BacktestResult:
    setups = draw(
        st.lists(
            st.builds(
                Setup,
                policy=names,
                settings=st.dictionaries(names, st.integers() | names, max_size=2),
                limit=st.sampled_from((16_000, 32_000)),
                budget=st.none() | st.sampled_from((500, 2_000)),
            ),
            min_size=1,
            max_size=4,
            unique_by=Setup.model_dump_json,
        )
    )
    sessions = draw(st.lists(names, max_size=3, unique=True))
    cells = [draw(some_cells(of, session)) for session in sessions for of in setups]
    return BacktestResult(
        setups=tuple(setups),
        cells=tuple(cells),
        controls=tuple(_some_controls(draw, sessions)),
        skipped=draw(st.dictionaries(names, names, max_size=2)),
    )


def _some_controls(draw: st.DrawFn, sessions: Sequence[str]) -> list[ControlResult]:
    return [
        control(session, name, budget=budget, scores=draw(some_scores()), bound=bound)
        for session in sessions
        for name, budget, bound in (
            ("drop", None, None),
            ("random ledger", 500, None),
            ("bound", 500, draw(st.floats(0, 50))),
        )
    ]
