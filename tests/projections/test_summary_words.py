"""Where the words of a summary come from."""

from cutbank.projections.phrase_origins import PhraseOrigins, find_phrases


def test_words_that_an_earlier_summary_had_are_that_ones() -> None:
    first = PhraseOrigins.from_summary(2, "The user wants a brown river and no silt.")
    second = PhraseOrigins.from_summary(5, "The user wants a brown river. It runs north.", first)
    third = PhraseOrigins.from_summary(8, "Brown river. It runs north! A delta was found.", second)

    assert first.count_by_boundary() == {2: 6}
    assert second.count_by_boundary() == {2: 3, 5: 3}
    assert third.count_by_boundary() == {5: 2, 8: 4}


def test_case_and_punctuation_make_no_other_words() -> None:
    assert find_phrases("A, b: c (d)") == find_phrases("a b C D") == {("a", "b", "c", "d")}


def test_a_text_of_few_words_is_one_phrase_and_one_of_none_has_none() -> None:
    assert find_phrases("two words") == {("two", "words")}
    assert find_phrases(" ... ") == frozenset()
