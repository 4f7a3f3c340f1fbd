"""What a terminal is sent: tables of any width, and no text that it obeys or does not show."""

import io
import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from cutbank.adapters.interfaces.command_line.printing import print_json, print_table, print_text

from .conftest import act_as_terminal


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


HARMFUL = "\x9b\x07\x7f\u202e\u2066\u200b\u00ad\ufeff\u3164\U000e0041\U0001d173"


@given(st.text(st.sampled_from(HARMFUL) | st.characters(exclude_categories=["Cs"])))
def test_a_terminal_shows_every_character_and_obeys_none(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", lines := Terminal())
        print_text(text)
        patch.setattr(sys, "stdout", document := Terminal())
        print_json({"text": text, text: 1})

    assert json.loads(document.getvalue())["text"] == text
    visible = (lines.getvalue() + document.getvalue()).replace("\n", "").replace("\t", "")
    assert not {unicodedata.category(one) for one in visible} & {"Cc", "Zl", "Zp"}
    assert not set(visible) & set(HARMFUL)


NAME = "a-rather-long-name-of-a-session-0123456789"
NUMBERS = [1_000_000 + n for n in range(8)]
HEADINGS = ["session", *(f"tokens {n}" for n in range(8)), "title"]
ROWS: list[list[str | int]] = [
    [NAME, *NUMBERS, "What it is about, 다음 작업 계획, at length"],
    ["b", *NUMBERS, ""],
]


def test_a_table_fits_the_terminal_and_loses_no_number(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    act_as_terminal(monkeypatch)
    for width in (20, 60, 80, 200):
        monkeypatch.setenv("COLUMNS", str(width))

        print_table(HEADINGS, ROWS)

        out = capsys.readouterr().out
        assert max(map(cell_len, out.splitlines())) <= width
        assert NAME in "".join(out.split())
        assert all(out.count(f"{number:,}") == len(ROWS) for number in NUMBERS)


def test_a_table_in_a_pipe_has_a_tab_between_values_and_is_not_padded(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table(HEADINGS, ROWS)

    heading, first, second = capsys.readouterr().out.splitlines()
    assert heading.split("\t") == HEADINGS
    assert first.split("\t") == [NAME, *(f"{number:,}" for number in NUMBERS), ROWS[0][-1]]
    assert second.startswith("b\t1,000,000\t")
