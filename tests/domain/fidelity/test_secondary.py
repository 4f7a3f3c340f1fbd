"""What is measured in addition to facts: their context, users' rules, and what is novel."""

from dataclasses import replace

from fidelity_sessions import Talk, dropping, measure, score_summary

from cutbank.domain.fidelity.fidelity_measure import FidelityMeasure
from cutbank.domain.fidelity.rows import WHOLE_HISTORY
from cutbank.domain.fidelity.words import WordContexts, WordReader
from cutbank.domain.ranges import Ranges

# C: a fact counts in its context where two of the words stand beside it that stood there.

CONTEXTS = WordContexts(WordReader())
IN_CONTEXT = measure(
    Talk()
    .user("go")
    .calls_tool("look", "ask")
    .returns("the harbour gate opens zone_of slowly")
    .says("well")
    .says("well")
    .says("close zone_of with bronze hinges"),
    (3, 4),
)


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
    found = {summary: score_summary(IN_CONTEXT, summary) for summary in hits}

    assert {text: (one.hits, one.context_hits) for text, one in found.items()} == hits


def test_a_row_that_is_kept_keeps_the_context_and_a_shortened_one_what_shows() -> None:
    (dropped,) = dropping(IN_CONTEXT.reading, IN_CONTEXT.boundaries)
    kept = replace(dropped, kept=Ranges.span(3, 3))

    for shown, hits in [(None, 1), ("gate zone_of", 0), ("harbour gate zone_of", 1)]:
        segment = replace(kept, shown={3: shown} if shown else {})
        assert IN_CONTEXT.score([segment]).context_hits == hits, shown


def test_context_is_quoted_where_words_and_fact_are_one_piece_of_a_row() -> None:
    hits = {
        "gate opens zone_of slowly": 1,
        "- `gate opens zone_of slowly` (#3)": 1,
        "so the harbour gate opens zone_of": 1,
        "opens zone_of slowly": 0,  # three words are no quote
        "harbour, gate: zone_of slowly": 0,  # nor are words that never stood in this order
        "harbour gate opens\nzone_of slowly": 0,
        "the harbour gate opens, and zone_of": 0,
    }
    found = {summary: score_summary(IN_CONTEXT, summary) for summary in hits}

    assert {text: one.quoted_hits for text, one in found.items()} == hits
    whole = IN_CONTEXT.score([WHOLE_HISTORY])
    assert (whole.quoted_hits, whole.quoted_context) == (1, 1.0)


def test_where_less_than_two_words_ever_stood_nothing_is_context() -> None:
    talk = Talk().user("zone_of").says("gate").says("go on").says("zone_of gate")

    scores = measure(talk, (3, 2)).score([WHOLE_HISTORY])
    assert (scores.stakes, scores.hits, scores.context_hits) == (1, 1, 0)


def test_words_near_are_whole_and_stand_within_reach() -> None:
    gap = " " * 96

    assert CONTEXTS.collect_words("it took 12 ms and 12ms longer", "12ms") == {"took", "longer"}
    assert CONTEXTS.collect_words(f"bank{gap}zone_of{gap}deep", "zone_of") == {"bank", "deep"}
    assert CONTEXTS.collect_words(f"bank {gap}zone_of {gap}deep", "zone_of") == set()


# Sentences in which users say how things must be, and whether their words survive

RULE = "Never touch the harbour gate before bronze hinges arrive."


def ruled(said: str = RULE) -> FidelityMeasure:
    return measure(Talk().user(said).says("well").says("well").says("well"), (3, 4))


def sentences(measure: FidelityMeasure) -> list[str]:
    return [rule.text for _, rule in measure.hidden_rules]


def test_only_sentences_with_a_word_of_constraint_count() -> None:
    texts = {
        f"The river is deep. {RULE} It ran dry?\nPlease  dredge\n- keep the bank\nrivers run": [
            *(RULE, "Please dredge", "- keep the bank")
        ],
        **{
            said: [said]
            for said in (
                *("you must dredge", "don't dredge", "don\u2019t dredge", "only dredge rivers"),
                *("make sure rivers run", "dredge, instead of digging", "ALWAYS dredge"),
                "at least seven rivers",
            )
        },
        "the keeper sat on the custard, mustard and lonely oyster": [],
        "only do it": [],  # no plain word that could be followed
        "never " + "dredge " * 100: [],  # pasted, without an end
        # What a program put into a message is not the user's.
        f"<system-reminder>You must dredge.</system-reminder>{RULE}": [RULE],
    }

    assert {text: sentences(ruled(text)) for text in texts} == texts
    by_others = Talk().user("go").says(RULE).attached(RULE).says("well").says("well")
    assert sentences(measure(by_others, (3, 4))) == []


def test_a_sentence_survives_by_four_of_five_words() -> None:
    rows = [
        # Its plain words: never, touch, harbour, gate, bronze, hinges, arrive.
        (RULE, "hinges of bronze, harbour gate; touch never", 1),
        (RULE, "hinges of bronze, harbour gate; never", 0),
        ("Never touch harbour gate hinges.", "touch harbour gate hinges", 1),
        (RULE, "", 0),
    ]
    for rule, summary, kept in rows:
        scores = score_summary(ruled(rule), summary)
        assert (scores.constraints, scores.constraints_kept) == (1, kept), summary


def test_a_message_that_still_shows_keeps_what_it_says() -> None:
    of = ruled()
    (dropped,) = dropping(of.reading, of.boundaries)
    kept = replace(dropped, kept=Ranges.span(1, 1))

    for shown, count in [(None, 1), ("Never touch", 0), (RULE[:-1], 1)]:
        segment = replace(kept, shown={1: shown} if shown else {})
        assert of.score([segment]).constraints_kept == count, shown
    assert of.score([WHOLE_HISTORY]).constraints_kept == 1


def test_what_the_user_says_again_in_the_kept_window_is_not_hidden() -> None:
    talk = Talk().user(RULE).says("well").says("well").user(RULE).says("well")

    assert sentences(measure(talk, (3, 4))) == []
    assert sentences(measure(talk, (3, 5))) == [RULE]


def test_a_sentence_counts_once_at_each_boundary() -> None:
    talk = Talk().user(f"{RULE}\n{RULE}").user(RULE).says("well").says("well").says("well")

    assert measure(talk, (2, 4), (3, 5)).score([WHOLE_HISTORY]).constraints == 2


# What summaries carry, and what of it stands nowhere in history

NAMED = (
    Talk()
    .system("zone_of")
    .user("src/river.py")
    .says("bank_of")
    .says("gate_of")
    .says("hinge_of")
    .says("later_on")
)


def test_what_no_row_had_said_by_then_is_novel_but_for_positions_of_the_log() -> None:
    counts = {
        "river.py, zone_of and bank_of; made_up in src/other.py": 2,
        "gate_of": 0,
        "hinge_of later_on": 2,
        "see #4 and #1": 0,  # call 3 saw positions up to 4
        "see #5": 1,
        "see #0": 1,
        "made_up made_up": 1,
        "": 0,
    }
    found = {summary: score_summary(measure(NAMED, (3, 4)), summary) for summary in counts}

    assert {text: one.novel for text, one in found.items()} == counts
    # Each summary counts once.
    assert score_summary(measure(NAMED, (3, 4), (4, 5)), "made_up").novel == 1
