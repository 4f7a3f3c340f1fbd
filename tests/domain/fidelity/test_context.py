"""C: a fact counts in its context where two of the words stand beside it that stood there."""

from dataclasses import replace

from fidelity_sessions import Talk, dropping
from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.fidelity.fidelity_measure import FidelityMeasure
from cutbank.domain.fidelity.later_references import RowBoundary
from cutbank.domain.fidelity.plain_words import PlainWords, WordContexts
from cutbank.domain.fidelity.rows import WHOLE_HISTORY
from cutbank.domain.ranges import Ranges

CONTEXTS = WordContexts(PlainWords())
READING = (
    Talk()
    .user("go")
    .calls_tool("look", "ask")
    .returns("the harbour gate opens zone_of slowly")
    .says("well")
    .says("well")
    .says("close zone_of with bronze hinges")
    .read()
)
BOUNDARIES = (RowBoundary(3, 4),)
MEASURE = FidelityMeasure(READING, BOUNDARIES)


def kept_with(summary: str) -> tuple[int, int]:
    scores = MEASURE.score(dropping(READING, BOUNDARIES, summary))
    return scores.hits, scores.context_hits


def test_a_fact_is_in_context_where_two_of_its_words_stand_near() -> None:
    hits = {
        "gate: zone_of, harbour": (1, 1),  # words of the last hidden row
        "bronze close zone_of": (1, 1),  # words of the row that uses it
        "harbour zone_of bronze": (1, 1),
        "zone_of": (1, 0),
        "gate gate zone_of river bank": (1, 0),
        "harbour gate opens": (0, 0),
        f"harbour gate {'river ' * 20}zone_of": (1, 0),
        f"harbour gate\n{'river ' * 10}\nzone_of": (1, 1),
    }

    assert {summary: kept_with(summary) for summary in hits} == hits


def test_a_row_that_is_kept_keeps_the_context_and_a_shortened_one_what_shows() -> None:
    (dropped,) = dropping(READING, BOUNDARIES)
    kept = replace(dropped, kept=Ranges.span(3, 3))

    assert MEASURE.score([kept]).context_hits == 1
    assert MEASURE.score([replace(kept, shown={3: "gate zone_of"})]).context_hits == 0
    assert MEASURE.score([replace(kept, shown={3: "harbour gate zone_of"})]).context_hits == 1


def test_where_less_than_two_words_ever_stood_nothing_is_context() -> None:
    reading = Talk().user("zone_of").says("gate").says("go on").says("zone_of gate").read()
    boundaries = (RowBoundary(3, 2),)
    measure = FidelityMeasure(reading, boundaries)

    assert len(measure.stakes) == 1
    assert measure.score([WHOLE_HISTORY]).hits == 1
    assert measure.score([WHOLE_HISTORY]).context_hits == 0


def test_words_near_are_whole_and_stand_within_reach() -> None:
    gap = " " * 96

    assert CONTEXTS.collect_words("it took 12 ms and 12ms longer", "12ms") == {"took", "longer"}
    assert CONTEXTS.collect_words(f"bank{gap}zone_of{gap}deep", "zone_of") == {"bank", "deep"}
    assert CONTEXTS.collect_words(f"bank {gap}zone_of {gap}deep", "zone_of") == set()


TEXT = st.lists(
    st.sampled_from(["river", "bank", "deep", "gate", "zone_of", "zone_of.x", ",", "\n"]),
    max_size=60,
)


@given(TEXT.map(" ".join))
def test_the_words_near_are_always_those_of_a_plain_search(text: str) -> None:
    line = PlainWords()
    spots, facts, start = [], [], 0
    for part in text.split("\n"):
        read = line.parse_line(part)
        spots += [(spot.word, start + spot.start, start + spot.end) for spot in read.word_spots]
        facts += [(start + fact.start, start + fact.end) for fact in read.facts]
        start += len(part) + 1

    assert CONTEXTS.list_nearby_words(text, "zone_of") == tuple(
        frozenset(word for word, a, b in spots if a >= first - 100 and b <= last + 100)
        for first, last in facts
    )
