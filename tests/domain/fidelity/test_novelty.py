"""What summaries carry, and what of it stands nowhere in history."""

from fidelity_sessions import NAMES, Talk, cut_talks, dropping
from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.fidelity.fidelity_measure import FidelityMeasure
from cutbank.domain.fidelity.later_references import RowBoundary
from cutbank.domain.fidelity.rows import WHOLE_HISTORY
from cutbank.domain.fidelity.scores import Scores
from cutbank.domain.fidelity.session_reading import SessionReading
from cutbank.domain.fidelity.visibility import find_novel_facts

CUT = (RowBoundary(3, 4),)
MEASURE = FidelityMeasure(
    Talk()
    .system("zone_of")
    .user("src/river.py")
    .says("bank_of")
    .says("gate_of")
    .says("hinge_of")
    .says("later_on")
    .read(),
    CUT,
)


def scored(summary: str) -> Scores:
    return MEASURE.score(dropping(MEASURE.reading, CUT, summary))


def test_what_no_row_had_said_by_then_is_novel_but_for_positions_of_the_log() -> None:
    counts = {
        "river.py, zone_of and bank_of; made_up in src/other.py": (5, 2),
        "gate_of": (1, 0),
        "hinge_of later_on": (2, 2),
        "see #4 and #1": (2, 0),  # call 3 saw positions up to 4
        "see #5": (1, 1),
        "see #0": (1, 1),
        "": (0, 0),
    }
    found = {summary: scored(summary) for summary in counts}

    assert {text: (one.carried, one.novel) for text, one in found.items()} == counts
    assert MEASURE.score([WHOLE_HISTORY]).carried == 0


def test_each_fact_counts_once_a_summary_and_each_summary_once() -> None:
    twice = (RowBoundary(3, 4), RowBoundary(4, 5))
    measure = FidelityMeasure(MEASURE.reading, twice)

    assert scored("made_up made_up").novel == scored("made_up made_up").carried == 1
    assert measure.score(dropping(measure.reading, twice, "made_up")).novel == 1


@given(cut_talks(), st.lists(NAMES, max_size=4), st.integers(0, 12))
def test_novel_is_always_what_no_row_below_the_call_carries(
    cut: tuple[SessionReading, tuple[RowBoundary, ...]], facts: list[str], number: int
) -> None:
    reading, _ = cut
    handle = f"#{number}"
    for call in range(1, reading.rows.calls + 1):
        below = reading.rows.rows[: reading.count_rows_seen(call)]
        said = {key for row in below for key in reading.words.find_carried_keys(row.text)}
        newest = max((row.position for row in below), default=0)

        found = find_novel_facts([*facts, handle], reading, call)

        assert {fact for fact in facts if fact not in said and fact != handle} == {*found} - {
            handle
        }
        assert (handle in found) == (handle not in said and not 1 <= number <= newest)
