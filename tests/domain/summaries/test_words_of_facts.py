"""The words that may be facts are found wherever they stand, however much is skipped between."""

import re

from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.summaries.extraction.facts import collect_line_words, find_fact_words

# What a word is, without the haste: every position is looked at.
PLAIN = re.compile(
    r"""--[a-z][\w-]++|[/~.#@-]{0,2}\b(?<!\\)[A-Z]?+[a-z]*+
    (?:://[^\s"'<>`)\]}|\\]{4,200}|[A-Z0-9_./:~@-][\w./:@~+%-]{0,126}[\w/])""",
    re.ASCII | re.VERBOSE,
)
PIECES = [
    *("word", "Word", "snake_case", "camelCase", "src/a.py", "~/b", "./c", "--flag", "-x", "#12"),
    *("https://a.example/b?c=d", "3.14", "12345", "E501", "x::y", "a->b", "é", "ñandú_1", "日本"),
    *(" ", "  ", "\n", "\t", "\\", "\\n", "(", ")", ",", ".", "..", "...", ":", "/", "@", "-", "_"),
    *("a" * 130, "b_" * 70, "C" * 127, "`", '"', "%", "+", "\x00", "\u00a0", "0", "z"),
]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text(max_size=60))
def test_what_is_skipped_holds_no_word(text: str) -> None:
    assert find_fact_words(text) == PLAIN.findall(text)


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_no_word_goes_on_in_the_next_line(text: str) -> None:
    lines = text.split("\n")

    assert [word for line in lines for word in find_fact_words(line)] == find_fact_words(text)


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_no_escape_sequence_hides_a_word_of_a_summary(text: str) -> None:
    assert collect_line_words(text) == set(PLAIN.findall(text.replace("\\", " ")))
