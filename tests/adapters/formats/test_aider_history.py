"""What a chat history of aider becomes, one rule a test."""

from pathlib import Path

import pytest
from claude_code_talk import Reading
from told_elsewhere import said
from transcripts import SAMPLES

from cutbank import SessionStore
from cutbank.adapters.runtime.importing.importer import import_path
from cutbank.adapters.transcripts.formats.aider import FORMAT
from cutbank.adapters.transcripts.formats.source import Source
from cutbank.adapters.transcripts.formats.steps import Begin, Call
from cutbank.domain.session_events import Usage

HARBOUR = SAMPLES / "aider-history" / "harbour.md"
BEGINS = "# aider chat started at 2026-03-01 10:00:00\n\n"


@pytest.fixture
def engine() -> str:
    """How events are stored is tested on both databases elsewhere."""
    return "sqlite"


def reading(path: Path) -> Reading:
    return Reading(list(FORMAT.read(Source(path))))


def test_each_header_begins_a_session_and_so_does_what_stands_before_the_first() -> None:
    before, *keys = [step.key for step in reading(HARBOUR).of(Begin)]

    assert before.startswith("aider-harbour-")
    assert keys == [
        "aider-2026-03-01T10:00:00",
        "aider-2026-03-01T10:00:00-2",
        "aider-2026-03-01T11:00:00",
    ]


def test_prompts_answers_and_what_was_printed_are_told_apart() -> None:
    told = [text for text in reading(HARBOUR).said if text[0] != "note"]

    assert told[:2] == [
        ("user", "and so on"),
        ("user", "Which boats leave today?\nLook at both lists."),
    ]
    assert told[2][0] == "assistant"
    assert told[2][1].startswith("I look at both lists.")
    assert told[-1] == ("user", "/add today")


def test_what_a_call_cost_is_read_from_what_was_printed() -> None:
    (call,) = reading(HARBOUR).of(Call)

    usage = Usage(input=5200, cache_read=2000, cache_write=1000, output=604)
    assert (call.fields["usage"], call.fields["cost_usd"]) == (usage, 0.02)


@pytest.mark.parametrize("text", ["# aider", "> a quote", '{"a": 1}\n' + BEGINS, "[]"])
def test_other_texts_are_no_history_of_aider(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.md"
    path.write_text(text)

    assert not FORMAT.recognises(Source(path))


def test_bytes_that_are_no_text_are_no_history(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(BEGINS.encode() + b"\xff\xfe")

    assert not FORMAT.recognises(Source(path))
    assert reading(path).outcomes == ["error"]


def test_a_history_that_grew_adds_what_is_new(store: SessionStore, tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text(BEGINS + "> Aider  \n\n#### go  \n\nI go.\n\n> Tokens: 5 sent, 6 received.  \n")
    list(import_path(store, path))
    path.write_text(path.read_text() + "> Applied  \n\n#### on  \n\nI went.\n")

    (report,) = import_path(store, path)

    session = store.session("aider-2026-03-01T10:00:00", create=False)
    assert report.added == 3
    assert [text for _, text, _ in said(session)] == ["go", "I go.", "on", "I went."]


def test_lines_that_end_as_on_windows_are_read_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes((BEGINS + "#### go\n\nI go.\n").replace("\n", "\r\n").encode())

    assert reading(path).said == [("user", "go"), ("assistant", "I go.")]
