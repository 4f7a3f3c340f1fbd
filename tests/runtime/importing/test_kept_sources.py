"""What was imported is kept byte for byte, and goes out as it came, with what was added since."""

import json
import sqlite3
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from claude_code_talk import SESSION, Talk, text
from codex_written import CutAt
from kept_sources import kept_bytes, kept_segments
from transcripts import import_file, import_path, samples

import cutbank
from cutbank import Block, ExportError, SessionStore, StoredSession, export, verify
from cutbank.adapters.runtime.archives import import_database, write_archive
from cutbank.adapters.storage.event_log import source_segments
from cutbank.adapters.transcripts.reports import FileReport


def talk(*, turns: int = 3) -> Talk:
    told = Talk()
    for number in range(turns):
        told.user(f"question {number}")
        told.says(f"m{number}", text(f"answer {number}"), output=3)
    return told


def only_session(store: SessionStore, report: FileReport) -> StoredSession:
    return store.session(report.sessions[0], create=False)


def bytes_of(session: StoredSession, to: str) -> bytes:
    out = BytesIO()
    export(session, to, out)
    return out.getvalue()


ENDINGS = {
    "as written": lambda raw: raw,
    "no last line feed": lambda raw: raw.rstrip(b"\n"),
    "carriage returns and blank lines": lambda raw: raw.replace(b"\n", b"\r\n\r\n"),
    "a byte order mark": lambda raw: b"\xef\xbb\xbf" + raw,
}


@pytest.mark.parametrize("change", ENDINGS.values(), ids=ENDINGS)
def test_what_was_added_follows_the_lines_as_they_came(
    change: Callable[[bytes], bytes], store: SessionStore, tmp_path: Path
) -> None:
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(change(talk().raw()))
    session = only_session(store, import_file(store, path))
    session.append(Block.user("and one more"))

    out = bytes_of(session, "claude-code")

    source = path.read_bytes()
    assert out.startswith(source)
    added = json.loads(out[len(source) :])
    assert added["message"]["content"] == "and one more"
    assert added["parentUuid"] == json.loads(talk().raw().splitlines()[-1])["uuid"]


def test_a_compaction_goes_out_where_it_was_made(store: SessionStore, tmp_path: Path) -> None:
    path = tmp_path / f"{SESSION}.jsonl"
    told = talk(turns=4)
    path.write_bytes(told.raw())
    session = only_session(store, import_file(store, path))
    session.compact(CutAt(session.position - 2))
    told.user("later")
    path.write_bytes(told.raw())
    import_file(store, path)

    lines = [json.loads(line) for line in bytes_of(session, "claude-code").splitlines()]

    kinds = [line.get("subtype") or line["type"] for line in lines]
    at = kinds.index("compact_boundary")
    assert kinds[:at] == ["user", "assistant"] * 4
    assert lines[at + 1]["isCompactSummary"] is True
    assert lines[at + 2]["message"]["content"] == "later"


def test_a_file_that_grew_keeps_one_copy_of_what_it_had(
    store: SessionStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_segments, "SEGMENT_BYTES", 200)
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(talk(turns=3).raw())
    import_file(store, path)
    before = kept_segments(store, path)

    path.write_bytes(talk(turns=5).raw())
    import_file(store, path)

    assert kept_bytes(store, path) == path.read_bytes()
    assert kept_segments(store, path)[: len(before) - 1] == before[:-1]


def test_equal_files_share_their_segments(store: SessionStore, tmp_path: Path) -> None:
    for name in ("one", "two"):
        path = tmp_path / f"{name}.json"
        path.write_text('[{"role": "user", "content": "hello"}]', encoding="utf-8")
        import_file(store, path)

    assert kept_segments(store, tmp_path / "one.json") == kept_segments(
        store, tmp_path / "two.json"
    )


def test_a_document_that_changed_here_is_written_anew_and_else_refused(
    store: SessionStore, tmp_path: Path
) -> None:
    found = {path.parent.name: path for path in samples()}
    copied = only_session(store, import_file(store, found["gemini-cli"]))
    written = only_session(store, import_file(store, found["opencode"]))
    for session in (copied, written):
        session.append(Block.user("and one more"))

    assert b"and one more" in bytes_of(written, "opencode")
    with pytest.raises(ExportError, match=r"added or retracted since; choose one of .*opencode"):
        export(copied, "gemini-cli", tmp_path / "out.json")
    assert not (tmp_path / "out.json").exists()


def test_settings_that_end_a_source_are_its_own_and_those_set_here_are_not(
    store: SessionStore, tmp_path: Path
) -> None:
    (sample,) = (path for path in samples() if "copilot-cli" in str(path) and path.is_file())
    path = tmp_path / "events.jsonl"
    path.write_bytes(sample.read_bytes().splitlines(keepends=True)[0])  # it names the model
    session = only_session(store, import_file(store, path))
    assert bytes_of(session, "copilot-cli") == path.read_bytes()

    session.configure(request_settings={"model": "another"})

    with pytest.raises(ExportError, match="added or retracted since"):
        bytes_of(session, "copilot-cli")


def test_a_file_of_several_sessions_goes_out_with_none_of_them(
    store: SessionStore, tmp_path: Path
) -> None:
    (path,) = (path for path in samples() if path.parent.name == "openai-messages-tau")
    session = only_session(store, import_file(store, path))

    with pytest.raises(ExportError, match="its source is not kept alone; choose one of "):
        export(session, "openai-messages-tau", tmp_path / "out.json")


def test_without_sources_nothing_is_kept_and_a_later_import_keeps_it(
    store: SessionStore, tmp_path: Path
) -> None:
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(talk().raw())

    def import_it(*, keep: bool) -> FileReport:
        (report,) = import_path(store, path, skip_unchanged=True, keep_sources=keep)
        return report

    import_it(keep=False)
    assert kept_segments(store, path) == []
    import_it(keep=True)

    assert kept_bytes(store, path) == path.read_bytes()
    assert import_it(keep=True).passed == "unchanged"


def test_a_damaged_segment_is_found_and_never_goes_out(tmp_path: Path) -> None:
    path, database = tmp_path / f"{SESSION}.jsonl", tmp_path / "a.db"
    path.write_bytes(talk().raw())
    with cutbank.open(database) as store:
        import_file(store, path)
    with sqlite3.connect(database) as raw:
        raw.execute("UPDATE source_segments SET content = zeroblob(20)")
    raw.close()

    with cutbank.open(database) as store:
        session = store.session(SESSION, create=False)
        (violation,) = verify(store).violations
        with pytest.raises(cutbank.StorageError, match=r"segment [0-9a-f]{32} is damaged"):
            export(session, "claude-code", tmp_path / "out.jsonl")

    assert (violation.rule, str(path) in violation.what) == ("source", True)
    assert not (tmp_path / "out.jsonl").exists()


def test_an_archive_holds_the_sources_too(store: SessionStore, tmp_path: Path) -> None:
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(talk().raw())
    session = only_session(store, import_file(store, path))
    write_archive([session], tmp_path / "a.cutbank")

    with cutbank.open(":memory:") as other:
        import_database(other, tmp_path / "a.cutbank", FileReport(path="a.cutbank"))
        restored = other.session(SESSION, create=False)
        assert bytes_of(restored, "claude-code") == path.read_bytes()
        assert verify(other).is_ok


def test_an_erased_session_takes_the_file_along_that_it_shared(
    store: SessionStore, tmp_path: Path
) -> None:
    (path,) = (path for path in samples() if path.parent.name == "openai-messages-tau")
    (report,) = import_path(store, path)
    first, second, *_ = report.sessions
    (prompt, *_) = store.session(second).blocks(kinds=["user"])
    written = json.dumps(prompt.block.text)[1:100].encode()
    assert written in kept_bytes(store, path)

    store.erase(second)

    assert kept_segments(store, path) == []
    assert store.session(first, create=False).view().entries
    assert verify(store).violations == []


def test_an_erasure_takes_a_shared_file_along_though_it_is_damaged(
    tmp_path: Path,
) -> None:
    (path,) = (path for path in samples() if path.parent.name == "openai-messages-tau")
    database = tmp_path / "s.db"
    with cutbank.open(database) as store:
        (report,) = import_path(store, path)
    with sqlite3.connect(database) as raw:
        raw.execute("UPDATE source_segments SET content = zeroblob(20)")
    raw.close()

    with cutbank.open(database) as store:
        erased = store.erase(report.sessions[-1])

        assert erased.content.segments
        assert kept_segments(store, path) == []
