"""A model's lines name what they were taken from, and quote what was said."""

from hypothesis import given
from hypothesis import strategies as st

from cutbank.adapters.models.reply_parsing import (
    correct_quotes,
    parse_reply,
    split_sections,
)
from cutbank.domain.ranges import Ranges
from cutbank.domain.summaries.clean_text import (
    is_quote_in,
    iter_quotes,
    normalize_quotes,
    split_handles,
)

COVERS = Ranges([(1, 20), (30, 40)])


def test_a_handle_is_kept_where_the_text_stands_for_it() -> None:
    rows: list[tuple[str, str, list[tuple[int, int]]]] = [
        ("- a (#3)", "- a (#3)", [(3, 3)]),
        ("- a (#3-5)", "- a (#3-5)", [(3, 5)]),
        ("- a (#3-#5)", "- a (#3-5)", [(3, 5)]),
        ("- a (#3\u20135)", "- a (#3-5)", [(3, 5)]),
        ("- a [#3, #7]", "- a (#3, #7)", [(3, 3), (7, 7)]),
        ("- a (#3; #7 and #9)", "- a (#3, #7, #9)", [(3, 3), (7, 7), (9, 9)]),
        ("- a (#3, 7)", "- a (#3, #7)", [(3, 3), (7, 7)]),
        ("- a (#18-32)", "- a (#18-20, #30-32)", [(18, 20), (30, 32)]),
        ("- a (#3, #99)", "- a (#3)", [(3, 3)]),
        ("- a (#99)", "- a", []),
        ("- a (#9-3)", "- a", []),
        ("- a (#0)", "- a", []),
        ("- a (#999999999999999999999)", "- a (#999999999999999999999)", []),
        ("- a (#3), then b (#4)", "- a (#3), then b (#4)", [(3, 4)]),
        ("- issue #3 of theirs", "- issue #3 of theirs", []),
        ("- see [#3](https://example.org)", "- see [#3](https://example.org)", []),
        ("- a (3)", "- a (3)", []),
    ]
    for said, kept, cites in rows:
        text = parse_reply(said, COVERS)

        assert text.text == kept, said
        assert text.cites == Ranges(cites), said


@given(st.text(alphabet="#()[]0123456789-, a\n", max_size=60))
def test_no_line_ends_with_a_handle_that_is_not_cited(said: str) -> None:
    text = parse_reply(said, COVERS)

    assert not text.cites - COVERS
    for line in text.text.split("\n"):
        # What is no list of handles to a reader is none to us, and may stay.
        assert not (split_handles(line)[1] & COVERS) - text.cites


def test_what_frames_a_summary_is_no_part_of_it() -> None:
    rows: list[str] = [
        "```markdown\n- a (#3)\n```",
        "<summary>\n- a (#3)\n</summary>",
        "<analysis>\nI think (#9)\n</analysis>\n- a (#3)",
        "<think>hm</think>- a (#3)",
        "- a (#3)\n<read-files>\nx.py\n</read-files>",
        "- a (#3)\n<modified-files>\nx.py",
    ]
    for said in rows:
        assert parse_reply(said, COVERS).text == "- a (#3)", said


def test_what_stands_under_a_heading_is_a_section() -> None:
    text = "Before.\n# Goal\n- a\n## **Progress**\n### Done\n- b\n\n## Empty\n## Next Steps ##\n- c"

    assert split_sections(text) == {"Goal": "- a", "Progress": "### Done\n- b", "Next Steps": "- c"}


SAID = ["Fix the  parser, please:\nit stops at line 3!", "NEVER push to main; ask me first."]


def test_the_users_spelling_is_put_in_place_and_what_nobody_said_stays() -> None:
    rows: list[tuple[str, str]] = [
        ('- User: "fix the parser please" (#1)', '- User: "Fix the parser, please" (#1)'),
        ('- User: "Never push to main." (#2)', '- User: "NEVER push to main" (#2)'),
        (
            '- User: "fix the parser… it stops at line 3" (#1)',
            '- User: "Fix the parser … it stops at line 3" (#1)',
        ),
        *[
            (line, line)
            for line in (
                '- User: "Drop the parser, please" (#1)',
                '- User: "it stops at line 3 … fix the parser" (#1)',
                '- User: "main" (#2)',
                '- the file says "never PUSH to main" (#2)',
            )
        ],
    ]
    for line, true in rows:
        assert correct_quotes(line, SAID) == true, line
    line = '- User: "call it the parser or else" (#1)'
    assert correct_quotes(line, ['Call it "the parser" or else.']) == line


@given(st.text(alphabet='abcXYZ ,.!"…\n\u00df\u0130', max_size=60))
def test_no_quote_that_was_true_becomes_false(said: str) -> None:
    line = f'- User: "{normalize_quotes(said)}" (#1)'
    before = [is_quote_in(quote, [normalize_quotes(said)]) for quote in iter_quotes(line)]

    after = correct_quotes(line, [said])

    if all(before):
        assert after == line


@given(st.text(alphabet="abcXYZ ,.!…\u00df\u0130", min_size=10, max_size=60))
def test_other_case_is_set_right(said: str) -> None:
    line = f'- User: "{normalize_quotes(said).swapcase()}" (#1)'

    after = correct_quotes(line, [said])

    if after != line:
        assert all(is_quote_in(quote, [normalize_quotes(said)]) for quote in iter_quotes(after))
