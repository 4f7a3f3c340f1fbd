"""A quote that has the user's letters gets the user's spelling; any other is left to the gate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutbank.adapters.models.summarizers.quote_correction import with_true_quotes
from cutbank.domain.summaries.quotes import comparable, quotes_in, stands_in

SAID = ["Fix the  parser, please:\nit stops at line 3!", "NEVER push to main; ask me first."]


@pytest.mark.parametrize(
    ("line", "true"),
    [
        ('- User: "fix the parser please" (#1)', '- User: "Fix the parser, please" (#1)'),
        ('- User: "Never push to main." (#2)', '- User: "NEVER push to main" (#2)'),
        (
            '- User: "fix the parser… it stops at line 3" (#1)',
            '- User: "Fix the parser … it stops at line 3" (#1)',
        ),
        ('- User: "Fix the parser, please" (#1)', '- User: "Fix the parser, please" (#1)'),
    ],
)
def test_the_users_spelling_is_put_in_place(line: str, true: str) -> None:
    assert with_true_quotes(line, SAID) == true


@pytest.mark.parametrize(
    "line",
    [
        '- User: "Drop the parser, please" (#1)',
        '- User: "it stops at line 3 … fix the parser" (#1)',
        '- User: "main" (#2)',
        '- the file says "never PUSH to main" (#2)',
    ],
)
def test_what_nobody_said_is_not_made_to_look_said(line: str) -> None:
    assert with_true_quotes(line, SAID) == line


def test_a_users_own_quotation_mark_ends_no_quote() -> None:
    line = '- User: "call it the parser or else" (#1)'

    assert with_true_quotes(line, ['Call it "the parser" or else.']) == line


@given(st.text(alphabet='abcXYZ ,.!"…\n\u00df\u0130', max_size=60))
def test_no_quote_that_was_true_becomes_false(said: str) -> None:
    line = f'- User: "{comparable(said)}" (#1)'
    before = [stands_in(quote, [comparable(said)]) for quote in quotes_in(line)]

    after = with_true_quotes(line, [said])

    if all(before):
        assert after == line


@given(st.text(alphabet="abcXYZ ,.!…\u00df\u0130", min_size=10, max_size=60))
def test_other_case_is_set_right(said: str) -> None:
    line = f'- User: "{comparable(said).swapcase()}" (#1)'

    after = with_true_quotes(line, [said])

    if after != line:
        assert all(stands_in(quote, [comparable(said)]) for quote in quotes_in(after))
