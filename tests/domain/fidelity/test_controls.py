"""Controls: what texts score that nobody would write, on the boundaries that all share."""

from collections.abc import Sequence
from dataclasses import replace

from fidelity_sessions import Cut, Talk, cut_talks
from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.fidelity.controls import CLEARED_TEXT, build_controls
from cutbank.domain.fidelity.fidelity_measure import FidelityMeasure, compute_upper_bound
from cutbank.domain.fidelity.later_references import RowBoundary
from cutbank.domain.fidelity.rows import RowKind, Scores, ViewSegment
from cutbank.domain.fidelity.session_reading import SessionReading

WRITTEN = ["random lines", "random ledger", "frequency ledger"]

TALK = (
    Talk()
    .system("be quick")
    .user("zone_of zone_of in src/river.py")
    .calls_tool("look", "bank_of")
    .returns("bank_of\nsrc/river.py\n\n12 rows")
    .says("bank_of is deep")
    .says("well")
    .says("bank_of")
)
READING = TALK.read()
CUT = (RowBoundary(3, 5),)


def control(
    name: str, reading: SessionReading, boundaries: Sequence[RowBoundary], budget: int
) -> tuple[ViewSegment, ...]:
    found = build_controls(reading, boundaries, (budget,))
    return next(segments for each, _, segments in found if each == name)


def summary(name: str, budget: int = 100) -> str:
    (spell,) = control(name, READING, CUT, budget)
    return spell.summary


def test_where_all_is_dropped_only_the_system_prompt_and_the_kept_window_are_sent() -> None:
    (spell,) = control("drop", READING, CUT, 100)

    assert (spell.call, spell.after) == (3, 4)
    assert (list(spell.kept), spell.summary) == ([1], "")


def test_masked_results_are_cleared_and_calls_and_prose_stay() -> None:
    # The kept window takes 19 tokens, three quarters are 14; #4 takes 7 once it is cleared, #3 7.
    (spell,) = control("masking", READING, (RowBoundary(5, 5),), 100)

    assert list(spell.kept) == [1, 3, 4]
    assert spell.shown == {4: CLEARED_TEXT}
    talk = Talk().user("gate")
    for _ in range(6):
        talk.says("gate")
    # Each row takes 5 tokens, and three are kept: there is room for 11.
    (spell,) = control("masking", talk.read(), (RowBoundary(6, 4),), 100)
    assert list(spell.kept) == [2, 3]


def test_a_ledger_has_each_fact_once_that_nothing_else_in_the_view_says() -> None:
    facts = ["12rows", "src/river.py", "zone_of"]

    assert sorted(summary("frequency ledger").split("\n")) == facts
    assert sorted(summary("random ledger").split("\n")) == facts
    # The first is what the most rows say.
    assert summary("frequency ledger").split("\n")[0] == "src/river.py"
    assert summary("frequency ledger", 3) == "src/river.py"
    assert sorted(summary("random lines").split("\n")) == sorted(
        ["zone_of zone_of in src/river.py", "look", "bank_of", "src/river.py", "12 rows"]
    )


def test_a_line_that_does_not_fit_is_passed_over() -> None:
    reading = Talk().user("load_rows my_id").says("a").says("b").says("c").read()

    def ledger(budget: int) -> list[str]:
        (spell,) = control("random ledger", reading, (RowBoundary(3, 3),), budget)
        return sorted(spell.summary.split("\n"))

    assert ledger(1) == [""]
    assert ledger(2) == ["my_id"]
    assert ledger(4) == ["load_rows", "my_id"]


def test_another_session_has_another_random_order_and_the_same_one_the_same() -> None:
    names = " ".join(f"name_{number}" for number in range(50))
    rows = Talk().user(names).says("a").says("b").says("c").read().rows
    cut = (RowBoundary(3, 3),)

    def ledger(session: str) -> str:
        return control("random ledger", SessionReading(replace(rows, session=session)), cut, 50)[
            0
        ].summary

    assert ledger("one") == ledger("one") != ledger("two")


@given(cut_talks(), st.integers(0, 500))
def test_every_control_keeps_to_its_budget_to_the_bound_and_to_what_was_said(
    cut: Cut, budget: int
) -> None:
    reading, boundaries = cut
    measure = FidelityMeasure(reading, boundaries)
    system = [row.position for row in reading.rows.rows if row.kind is RowKind.SYSTEM]
    totals: dict[str, Scores] = {}
    for name, _, spells in build_controls(reading, boundaries, (budget,)):
        totals[name] = measure.score(spells)
        assert totals[name].novel == 0, name
        for spell in spells:
            assert all(at > spell.after or at in spell.kept for at in system), name
            assert -(-len(spell.summary) // 4) <= budget, name
        if name in WRITTEN:
            assert [spell.call for spell in spells] == [cut.call for cut in boundaries], name
            assert totals[name].hits <= compute_upper_bound(measure, budget) + 1e-9, name

    full, none = totals["full history"], totals["drop"]
    assert (full.hits, full.pair_hits) == (full.stakes, full.pairs)
    assert full.modified_named == full.modified
    assert full.constraints_kept == full.constraints
    assert none.hits == none.pair_hits == none.constraints_kept == 0


def test_a_text_depends_on_its_own_boundary_alone() -> None:
    talk = Talk().user("go")
    for number in range(12):
        talk.says(f"name_{number} said by part_{number}")
    reading, boundaries = talk.read(), (RowBoundary(6, 6), RowBoundary(11, 11))

    for name in WRITTEN:
        alone = control(name, reading, boundaries[1:], 100)
        assert control(name, reading, boundaries, 100)[1:] == alone, name
