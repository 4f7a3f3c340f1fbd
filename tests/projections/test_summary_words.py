"""Where the words of a summary come from."""

from cutbank.projections.phrase_origins import Words, phrases_of


def test_words_that_an_earlier_summary_had_are_that_ones() -> None:
    first = Words.of(2, "The user wants a brown river and no silt.")
    second = Words.of(5, "The user wants a brown river. It runs north.", first)
    third = Words.of(8, "Brown river. It runs north! A delta was found.", second)

    assert first.by_boundary() == {2: 6}
    assert second.by_boundary() == {2: 3, 5: 3}
    assert third.by_boundary() == {5: 2, 8: 4}


def test_case_and_punctuation_make_no_other_words() -> None:
    assert phrases_of("A, b: c (d)") == phrases_of("a b C D") == {("a", "b", "c", "d")}


def test_a_text_of_few_words_is_one_phrase_and_one_of_none_has_none() -> None:
    assert phrases_of("two words") == {("two", "words")}
    assert phrases_of(" ... ") == frozenset()
