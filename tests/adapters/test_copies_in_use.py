"""While four processes write, `backup` is right, and a plain copy is either right or refused."""

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from faulty import texts
from processes import Processes, processes

import cutbank
from cutbank.adapters.analysis.verifier import verify
from cutbank.domain.errors import StorageError

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="copies of processes are POSIX's")

WRITERS = 4
REFUSALS = ("is a copy made while the database was in use", "is damaged")


@pytest.fixture(scope="module")
def run() -> Iterator[Processes]:
    with processes() as run:
        yield run


def check(store: cutbank.SessionStore) -> int:
    """Every session is what its writer said up to some moment; returns how much that is."""
    assert verify(store).violations == []
    said = [texts(session) for session in store.sessions()]
    for one in said:
        assert len(one) % 2 == 0
        assert [text.split()[0] for text in one] == [f"{at // 2}" for at in range(len(one))]
    return sum(map(len, said))


@pytest.mark.parametrize("times", [30, pytest.param(300, marks=pytest.mark.slow)])
def test_a_backup_is_right_while_four_processes_write(
    tmp_path: Path, run: Processes, times: int
) -> None:
    path, grown = tmp_path / "log.db", [0]

    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(run.run_together, WRITERS, "writes", path, "NUMBER", times)
        while not writing.done():
            copy = tmp_path / f"backup {len(grown)}.db"
            with cutbank.open(path) as store:
                store.backup(copy)
            with cutbank.open(copy) as store:
                grown.append(check(store))
            copy.unlink()
        writing.result()

    assert grown == sorted(grown)
    with cutbank.open(path) as store:
        assert check(store) == WRITERS * times * 2


@pytest.mark.parametrize("times", [30, pytest.param(300, marks=pytest.mark.slow)])
def test_a_plain_copy_of_what_four_processes_write_is_right_or_refused(
    tmp_path: Path, run: Processes, times: int
) -> None:
    path = tmp_path / "log.db"
    run.run("writes", path, 9, 1)
    refused = []

    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(run.run_together, WRITERS, "writes", path, "NUMBER", times)
        for number in range(100_000):
            folder = tmp_path / f"{number}"
            folder.mkdir()
            copy = folder / "log.db"
            shutil.copy(path, copy)
            if number % 2:
                # As somebody does who knows of the log, and not that both must be of one moment.
                copy_if_there(path.with_name("log.db-wal"), folder)
            try:
                with cutbank.open(copy) as store:
                    check(store)
            except StorageError as refusal:
                refused.append(str(refusal))
            shutil.rmtree(folder)
            if writing.done():
                break
        writing.result()

    assert refused
    assert all(any(words in line for words in REFUSALS) for line in refused), refused
    assert all("\n" not in line for line in refused)
    with cutbank.open(path) as store:
        assert check(store) == (WRITERS * times + 1) * 2


def copy_if_there(file: Path, folder: Path) -> None:
    try:
        shutil.copy(file, folder / file.name)
    except FileNotFoundError:
        return  # they have all left meanwhile
