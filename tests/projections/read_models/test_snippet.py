"""A snippet is one line around a match, and says where in it the match stands."""

from hypothesis import given
from hypothesis import strategies as st

from cutbank.projections.read_models.search_query import SNIPPET_CHARS, SearchQuery, make_snippet


def test_what_was_found_is_marked() -> None:
    rows: list[tuple[str, str, str]] = [
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
    ]

    assert [
        (text, query, make_snippet(text, SearchQuery.parse(query)).mark_matches())
        for text, query, _ in rows
    ] == rows


def test_of_a_long_text_the_piece_around_the_match_is_shown() -> None:
    found = make_snippet("silt " * 999 + "one pebble " + "clay " * 999, SearchQuery.parse("pebble"))

    assert found.mark_matches().startswith("…")
    assert found.mark_matches().endswith("…")
    assert "one «pebble» clay" in found.mark_matches()
    assert len(found.text) <= SNIPPET_CHARS + 2


@given(st.text(max_size=600), st.sampled_from(["clay", "caf*", '"a b"', "Ähre"]))
def test_marks_stand_inside_of_one_line(text: str, query: str) -> None:
    found = make_snippet(text, SearchQuery.parse(query))

    assert "\n" not in found.text
    assert len(found.text) <= SNIPPET_CHARS + 2
    end = 0
    for start, stop in found.marks:
        assert end <= start < stop <= len(found.text)
        end = stop
