"""A quote that has the user's letters gets the user's spelling; any other is left to the gate."""

from hypothesis import given
from hypothesis import strategies as st

from cutbank.adapters.models.summarizers.reply_parsing import correct_quotes
from cutbank.domain.summaries.quotes import is_quote_in, iter_quotes, normalize_quotes

SAID = ["Fix the  parser, please:\nit stops at line 3!", "NEVER push to main; ask me first."]


def test_the_users_spelling_is_put_in_place() -> None:
    rows: list[tuple[str, str]] = [
        ('- User: "fix the parser please" (#1)', '- User: "Fix the parser, please" (#1)'),
        ('- User: "Never push to main." (#2)', '- User: "NEVER push to main" (#2)'),
        (
            '- User: "fix the parser… it stops at line 3" (#1)',
            '- User: "Fix the parser … it stops at line 3" (#1)',
        ),
        ('- User: "Fix the parser, please" (#1)', '- User: "Fix the parser, please" (#1)'),
    ]
    for line, true in rows:
        assert correct_quotes(line, SAID) == true, line


def test_what_nobody_said_is_not_made_to_look_said() -> None:
    rows: list[str] = [
        '- User: "Drop the parser, please" (#1)',
        '- User: "it stops at line 3 … fix the parser" (#1)',
        '- User: "main" (#2)',
        '- the file says "never PUSH to main" (#2)',
    ]
    for line in rows:
        assert correct_quotes(line, SAID) == line, line


def test_a_users_own_quotation_mark_ends_no_quote() -> None:
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
