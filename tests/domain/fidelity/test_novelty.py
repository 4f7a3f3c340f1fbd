"""What summaries carry, and what of it stands nowhere in history."""

from fidelity_sessions import NAMES, TEXTS, Talk, cut_talks, dropping
from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.fidelity.canonical_boundaries import Boundary
from cutbank.domain.fidelity.fidelity_measure import Measure
from cutbank.domain.fidelity.novelty import novel
from cutbank.domain.fidelity.scores import Scores
from cutbank.domain.fidelity.segments import WHOLE
from cutbank.domain.fidelity.session_reading import Reading

CUT = (Boundary(3, 4),)
MEASURE = Measure(
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
    return MEASURE.scores(dropping(MEASURE.reading, CUT, summary))


def test_what_no_row_said_is_novel() -> None:
    scores = scored("river.py, zone_of and bank_of; made_up in src/other.py")

    assert (scores.carried, scores.novel) == (5, 2)


def test_what_the_agent_says_only_later_is_novel() -> None:
    assert scored("gate_of").novel == 0
    assert scored("hinge_of later_on").novel == 2


def test_a_longer_path_than_was_said_is_novel_and_a_shorter_one_is_not() -> None:
    assert scored("core/src/river.py").novel == 1
    assert scored("river.py").novel == 0


def test_positions_of_the_log_are_addresses_and_no_inventions() -> None:
    # Call 3 saw positions up to 4.
    assert scored("see #4 and #1").novel == 0
    assert scored("see #5").novel == 1
    assert scored("see #0").novel == 1


def test_each_fact_counts_once_a_summary_and_each_summary_once() -> None:
    twice = (Boundary(3, 4), Boundary(4, 5))
    measure = Measure(MEASURE.reading, twice)

    assert scored("made_up made_up").novel == scored("made_up made_up").carried == 1
    assert measure.scores(dropping(measure.reading, twice, "made_up")).novel == 1


def test_what_is_sent_without_a_summary_invents_nothing() -> None:
    assert MEASURE.scores([WHOLE]).carried == MEASURE.scores([WHOLE]).novel == 0
    assert scored("").carried == 0


@given(cut_talks(), st.data())
def test_what_is_copied_from_history_is_never_novel(
    cut: tuple[Reading, tuple[Boundary, ...]], data: st.DataObject
) -> None:
    reading, boundaries = cut
    for boundary in boundaries:
        hidden = [row.text for row in reading.rows.rows[: reading.seen_by(boundary.call)]]
        summary = "\n".join(data.draw(st.lists(st.sampled_from(hidden or [""]), max_size=4)))
        measure = Measure(reading, [boundary])
        assert measure.scores(dropping(reading, [boundary], summary)).novel == 0


@given(cut_talks(), TEXTS)
def test_there_are_never_more_novel_facts_than_facts(
    cut: tuple[Reading, tuple[Boundary, ...]], summary: str
) -> None:
    reading, boundaries = cut
    scores = Measure(reading, boundaries).scores(dropping(reading, boundaries, summary))

    assert 0 <= scores.novel <= scores.carried


@given(cut_talks(), st.lists(NAMES, max_size=4), st.integers(0, 12))
def test_novel_is_always_what_no_row_below_the_call_carries(
    cut: tuple[Reading, tuple[Boundary, ...]], facts: list[str], number: int
) -> None:
    reading, _ = cut
    handle = f"#{number}"
    for call in range(1, reading.rows.calls + 1):
        below = reading.rows.rows[: reading.seen_by(call)]
        said = {key for row in below for key in reading.words.carried(row.text)}
        newest = max((row.position for row in below), default=0)

        found = novel([*facts, handle], reading, call)

        assert {fact for fact in facts if fact not in said and fact != handle} == {*found} - {
            handle
        }
        assert (handle in found) == (handle not in said and not 1 <= number <= newest)
