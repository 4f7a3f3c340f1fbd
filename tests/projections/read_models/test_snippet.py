"""A snippet is one line around a match, and says where in it the match stands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutbank.projections.read_models.search_query import Query
from cutbank.projections.read_models.snippet import WIDTH, snippet


@pytest.mark.parametrize(
    ("text", "query", "marked"),
    [
        ("one clay two", "clay", "one «clay» two"),
        ("Clay\n\n  and\tCLAY", "clay", "«Clay» and «CLAY»"),
        ("claystone clay", "clay", "claystone «clay»"),
        ("claystone", "clay*", "«clay»stone"),
        ("parser . c", "parser.c", "«parser . c»"),
        ("a café here", "cafe", "a «café» here"),
        ("a cafe here", "café", "a «cafe» here"),
        ("both silt and clay", "clay silt", "both «silt» and «clay»"),
        ("nothing of it", "clay", "nothing of it"),
        ("clay -silt", "clay -sand", "«clay» -silt"),
    ],
)
def test_what_was_found_is_marked(text: str, query: str, marked: str) -> None:
    assert snippet(text, Query.parsed(query)).marked() == marked


def test_of_a_long_text_the_piece_around_the_match_is_shown() -> None:
    found = snippet("silt " * 999 + "one pebble " + "clay " * 999, Query.parsed("pebble"))

    assert found.marked().startswith("…")
    assert found.marked().endswith("…")
    assert "one «pebble» clay" in found.marked()
    assert len(found.text) <= WIDTH + 2


@given(st.text(max_size=600), st.sampled_from(["clay", "caf*", '"a b"', "Ähre"]))
def test_marks_stand_inside_of_one_line(text: str, query: str) -> None:
    found = snippet(text, Query.parsed(query))

    assert "\n" not in found.text
    assert len(found.text) <= WIDTH + 2
    end = 0
    for start, stop in found.marks:
        assert end <= start < stop <= len(found.text)
        end = stop
