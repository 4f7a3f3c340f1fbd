"""Sentences in which users say how things must be, and whether their words survive."""

from dataclasses import replace

import pytest
from fidelity_sessions import Talk, dropping

from cutbank.domain.fidelity.canonical_boundaries import Boundary
from cutbank.domain.fidelity.fidelity_measure import Measure
from cutbank.domain.fidelity.scores import Scores
from cutbank.domain.fidelity.segments import WHOLE
from cutbank.domain.ranges import Ranges

RULE = "Never touch the harbour gate before bronze hinges arrive."
CUT = (Boundary(3, 4),)


def measure(said: str) -> Measure:
    talk = Talk().user(said).says("well").says("well").says("well")
    return Measure(talk.read(), CUT)


def sentences(said: str) -> list[str]:
    return [rule.text for at in measure(said).beside.rules for rule in at.rules]


def scored(summary: str, said: str = RULE) -> Scores:
    of = measure(said)
    return of.scores(dropping(of.reading, CUT, summary))


def test_only_sentences_with_a_word_of_constraint_count() -> None:
    said = f"The river is deep. {RULE} It ran dry?\nPlease  dredge\n- keep the bank\nrivers run"

    assert sentences(said) == [RULE, "Please dredge", "- keep the bank"]


@pytest.mark.parametrize(
    "said",
    [
        "you must dredge",
        "don't dredge",
        "don\u2019t dredge",
        "only dredge rivers",
        "make sure rivers run",
        "dredge, instead of digging",
        "ALWAYS dredge",
        "at least seven rivers",
    ],
)
def test_words_of_constraint(said: str) -> None:
    assert sentences(said) == [said]


def test_parts_of_words_constrain_nothing() -> None:
    assert sentences("the keeper sat on the custard, mustard and lonely oyster") == []


def test_a_sentence_without_plain_words_cannot_be_followed_and_does_not_count() -> None:
    assert sentences("only do it") == []


def test_pasted_text_without_an_end_is_no_sentence() -> None:
    assert sentences("never " + "dredge " * 100) == []


def test_what_a_program_put_into_a_message_is_not_the_users() -> None:
    said = f"<system-reminder>You must dredge.</system-reminder>{RULE}"

    assert [rule.removeprefix("\u2026").strip() for rule in sentences(said)] == [RULE]


def test_only_users_say_how_things_must_be() -> None:
    talk = Talk().user("go").says(RULE).attached(RULE).says("well").says("well")

    assert Measure(talk.read(), (Boundary(3, 4),)).beside.rules[0].rules == ()


def test_a_sentence_survives_by_four_of_five_words() -> None:
    # Its plain words: never, touch, harbour, gate, bronze, hinges, arrive.
    assert scored("hinges of bronze, harbour gate; touch never").constraints_kept == 1
    assert scored("hinges of bronze, harbour gate; never").constraints_kept == 0
    assert scored("").constraints_kept == 0
    assert scored("").constraints == 1


def test_a_message_that_still_shows_keeps_what_it_says() -> None:
    of = measure(RULE)
    (dropped,) = dropping(of.reading, CUT)
    kept = replace(dropped, kept=Ranges.span(1, 1))

    assert of.scores([kept]).constraints_kept == 1
    assert of.scores([replace(kept, shown={1: "Never touch"})]).constraints_kept == 0
    assert of.scores([replace(kept, shown={1: RULE[:-1]})]).constraints_kept == 1
    assert of.scores([WHOLE]).constraints_kept == 1


def test_what_the_user_says_again_in_the_kept_window_is_not_hidden() -> None:
    talk = Talk().user(RULE).says("well").says("well").user(RULE).says("well")

    assert Measure(talk.read(), (Boundary(3, 4),)).beside.rules[0].rules == ()
    assert len(Measure(talk.read(), (Boundary(3, 5),)).beside.rules[0].rules) == 1


def test_a_sentence_counts_once_at_each_boundary() -> None:
    talk = Talk().user(f"{RULE}\n{RULE}").user(RULE).says("well").says("well").says("well")
    of = Measure(talk.read(), (Boundary(2, 4), Boundary(3, 5)))

    assert of.scores([WHOLE]).constraints == 2
