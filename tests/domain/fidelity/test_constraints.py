"""Sentences in which users say how things must be, and whether their words survive."""

from dataclasses import replace

from fidelity_sessions import Talk, dropping

from cutbank.domain.fidelity.fidelity_measure import FidelityMeasure
from cutbank.domain.fidelity.later_references import RowBoundary
from cutbank.domain.fidelity.rows import WHOLE_HISTORY
from cutbank.domain.fidelity.scores import Scores
from cutbank.domain.ranges import Ranges

RULE = "Never touch the harbour gate before bronze hinges arrive."
CUT = (RowBoundary(3, 4),)


def measure(said: str) -> FidelityMeasure:
    talk = Talk().user(said).says("well").says("well").says("well")
    return FidelityMeasure(talk.read(), CUT)


def sentences(said: str) -> list[str]:
    return [rule.text for at in measure(said).beside.hidden_rules for rule in at.rules]


def scored(summary: str, said: str = RULE) -> Scores:
    of = measure(said)
    return of.score(dropping(of.reading, CUT, summary))


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
    }

    assert {text: sentences(text) for text in texts} == texts


def test_what_a_program_put_into_a_message_is_not_the_users() -> None:
    said = f"<system-reminder>You must dredge.</system-reminder>{RULE}"

    assert [rule.removeprefix("\u2026").strip() for rule in sentences(said)] == [RULE]


def test_only_users_say_how_things_must_be() -> None:
    talk = Talk().user("go").says(RULE).attached(RULE).says("well").says("well")

    assert FidelityMeasure(talk.read(), (RowBoundary(3, 4),)).beside.hidden_rules[0].rules == ()


def test_a_sentence_survives_by_four_of_five_words() -> None:
    five = "Never touch harbour gate hinges."

    # Its plain words: never, touch, harbour, gate, bronze, hinges, arrive.
    assert scored("hinges of bronze, harbour gate; touch never").constraints_kept == 1
    assert scored("hinges of bronze, harbour gate; never").constraints_kept == 0
    assert scored("touch harbour gate hinges", five).constraints_kept == 1
    assert (scored("").constraints, scored("").constraints_kept) == (1, 0)


def test_a_message_that_still_shows_keeps_what_it_says() -> None:
    of = measure(RULE)
    (dropped,) = dropping(of.reading, CUT)
    kept = replace(dropped, kept=Ranges.span(1, 1))

    assert of.score([kept]).constraints_kept == 1
    assert of.score([replace(kept, shown={1: "Never touch"})]).constraints_kept == 0
    assert of.score([replace(kept, shown={1: RULE[:-1]})]).constraints_kept == 1
    assert of.score([WHOLE_HISTORY]).constraints_kept == 1


def test_what_the_user_says_again_in_the_kept_window_is_not_hidden() -> None:
    talk = Talk().user(RULE).says("well").says("well").user(RULE).says("well")

    assert FidelityMeasure(talk.read(), (RowBoundary(3, 4),)).beside.hidden_rules[0].rules == ()
    assert len(FidelityMeasure(talk.read(), (RowBoundary(3, 5),)).beside.hidden_rules[0].rules) == 1


def test_a_sentence_counts_once_at_each_boundary() -> None:
    talk = Talk().user(f"{RULE}\n{RULE}").user(RULE).says("well").says("well").says("well")
    of = FidelityMeasure(talk.read(), (RowBoundary(2, 4), RowBoundary(3, 5)))

    assert of.score([WHOLE_HISTORY]).constraints == 2
