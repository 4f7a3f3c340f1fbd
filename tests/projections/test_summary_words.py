"""Where the words of a summary come from."""

from collections import Counter

from cutbank.projections.lineage_tree import trace_phrases


def test_words_that_an_earlier_summary_had_are_that_ones() -> None:
    first = trace_phrases(2, "The user wants a brown river and no silt.", {})
    second = trace_phrases(5, "The user wants a brown river. It runs north.", first)
    third = trace_phrases(8, "Brown river. It runs north! A delta was found.", second)

    assert Counter(first.values()) == {2: 6}
    assert Counter(second.values()) == {2: 3, 5: 3}
    assert Counter(third.values()) == {5: 2, 8: 4}


def test_a_phrase_has_no_case_and_no_punctuation_and_may_be_all_of_a_short_text() -> None:
    texts = {"A, b: c (d)": {("a", "b", "c", "d")}, "two words": {("two", "words")}, " ... ": set()}

    assert {text: set(trace_phrases(2, text, {})) for text in texts} == texts
