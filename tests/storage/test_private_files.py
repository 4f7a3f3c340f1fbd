"""Whatever is written is for its owner alone, whatever the umask says."""

import os
from collections.abc import Iterator
from pathlib import Path
from stat import S_IMODE

import pytest

import cutbank
from cutbank import Block, MaintenanceSettings, Settings
from cutbank.adapters.analysis.backtest.report import write_report
from cutbank.adapters.analysis.session_page import write_page
from cutbank.adapters.runtime.archives import write_archive
from cutbank.adapters.storage.private_files import open_new

SAMPLES = Path(__file__).parents[1] / "samples"
SAMPLE = next((SAMPLES / "pi").glob("*.jsonl"))
FOLDER = next((SAMPLES / "openhands-v1").iterdir())


@pytest.fixture(autouse=True)
def _open_handed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("CACHE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    before = os.umask(0)
    yield
    os.umask(before)


def test_all_that_is_written_is_its_owner_s_alone(database: str, tmp_path: Path) -> None:
    (tmp_path / "backups").mkdir(mode=0o700)
    backups = MaintenanceSettings(backup_folder=str(tmp_path / "backups"))
    with cutbank.open(database, settings=Settings(maintenance=backups)) as store:
        cutbank.import_transcripts(store, SAMPLE)
        session = store.sessions()[0]

        session.append(Block.user("words"))  # and its log lies beside it
        store.search("words")
        store.backup(tmp_path / "backup.db")
        cutbank.export(session, "claude-code", tmp_path / "export.jsonl")
        (report,) = cutbank.import_transcripts(store, FOLDER)
        folders = store.session(report.sessions[0], create=False)
        cutbank.export(folders, "openhands-v1", tmp_path / "export")
        write_archive([session], tmp_path / "sessions.cutbank")
        write_page(session, tmp_path / "page.html")
        measured = cutbank.backtest(store, ["pi"], cache=tmp_path / "new" / "cache.db", jobs=1)
        write_report(measured, tmp_path / "report" / "of today")
        assert len(cutbank.run_maintenance(store)) == 1

        found = list(tmp_path.rglob("*"))
        assert len(found) > 12
        assert [path for path in found if S_IMODE(path.stat().st_mode) & 0o077] == []


def test_a_database_that_others_may_read_is_said_once(
    database: str, caplog: pytest.LogCaptureFixture
) -> None:
    cutbank.open(database).close()
    assert not caplog.records

    Path(database).chmod(0o644)
    for _ in range(2):
        cutbank.open(database).close()

    (said,) = caplog.messages
    assert said.startswith(f"{database} can be read by others")


def test_a_file_or_link_in_the_way_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(FileExistsError):
        open_new(tmp_path / "link")

    assert not (tmp_path / "elsewhere").exists()
