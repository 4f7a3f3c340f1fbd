"""What a chat history of aider becomes, one rule a test."""

from pathlib import Path

import pytest
from claude_code_talk import Reading
from told_elsewhere import said

from cutbank import SessionStore
from cutbank.adapters.runtime.importing.importer import import_path
from cutbank.adapters.transcripts.formats.aider import FORMAT
from cutbank.adapters.transcripts.formats.source import TranscriptSource

BEGINS = "# aider chat started at 2026-03-01 10:00:00\n\n"


def reading(path: Path) -> Reading:
    return Reading(list(FORMAT.read(TranscriptSource(path))))


@pytest.mark.parametrize("text", ["# aider", "> a quote", '{"a": 1}\n' + BEGINS, "[]"])
def test_other_texts_are_no_history_of_aider(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.md"
    path.write_text(text)

    assert not FORMAT.recognizes(TranscriptSource(path))


def test_bytes_that_are_no_text_are_no_history(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(BEGINS.encode() + b"\xff\xfe")

    assert not FORMAT.recognizes(TranscriptSource(path))
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
