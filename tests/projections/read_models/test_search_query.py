"""A search is read as people type it, and nothing in it is an operator by accident."""

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.errors import InvalidSettingError
from cutbank.projections.read_models.search_query import SearchQuery


def test_a_search_is_read() -> None:
    rows: list[tuple[str, str]] = [
        ("clay silt", '("clay" AND "silt")'),
        ('"clay silt" sand', '("clay silt" AND "sand")'),
        ("clay -silt", '(("clay") NOT ("silt"))'),
        ('clay -"silt sand" -b', '(("clay") NOT ("silt sand" OR "b"))'),
        ("cla*", '("cla" *)'),
        ("a OR b", '("a" AND "OR" AND "b")'),
        ("parser.c:12", '("parser.c:12")'),
        ("clay -> silt", '("clay" AND "silt")'),
        ("well-known", '("well-known")'),
        ("a\0b", '("a" AND "b")'),
    ]

    assert [(text, SearchQuery.parse(text).expression) for text, _ in rows] == rows


def test_what_cannot_be_understood_is_said_in_one_line() -> None:
    rows: list[tuple[str, str]] = [
        ("", "nothing to search for"),
        (" -> ! ", "nothing to search for"),
        ("*", "nothing to search for"),
        ("-clay", "say what to find"),
        ('clay "silt', "a quote is never closed"),
        ("cl*", "3 letters before"),
    ]
    for text, said in rows:
        with pytest.raises(InvalidSettingError, match=said) as refused:
            SearchQuery.parse(text)

        assert "\n" not in str(refused.value), text


@given(st.text(st.characters() | st.sampled_from('"*-^():{} \0'), max_size=40))
def test_no_text_is_an_error_of_the_database(text: str) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE t USING fts5(said)")
        try:
            expression = SearchQuery.parse(text).expression
        except InvalidSettingError:
            return  # said in words of ours
        connection.execute("SELECT * FROM t WHERE t MATCH ?", (expression,)).fetchall()
