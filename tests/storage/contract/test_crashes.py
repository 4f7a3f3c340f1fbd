"""A process that is killed at any moment, forked or overtaken loses nothing that is stored."""

import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
import victims
from acknowledged import Acknowledged
from claude_code_talk import Talk, text
from processes import Processes
from transcripts import import_path

import cutbank
from cutbank import Block, SessionStore, verify

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes as POSIX does")

FORKS = Path(__file__).parents[2] / "support" / "forks_while_writing.py"
SEED = 20260310
LAG = 100_000
"""Up to some milliseconds, which is longer than an append takes."""


def rounds(fast: int, slow: int) -> pytest.MarkDecorator:
    """Kills of one database: a few, or in the slow part several databases of ten.

    Each kill is followed by a check of all that the database holds.
    """
    several = [pytest.param(part, 10, marks=pytest.mark.slow) for part in range(1, slow // 10 + 1)]
    return pytest.mark.parametrize(("part", "kills"), [(0, fast), *several])


def dice(part: int, number: int) -> Random:
    return Random(SEED + 100 * part + number)  # noqa: S311 - nothing here is secret


@rounds(2, 40)
@pytest.mark.parametrize("work", ["appends", "compacts"])
def test_what_was_acknowledged_survives_a_kill(
    database: str, run: Processes, part: int, kills: int, work: str
) -> None:
    random, acknowledged = dice(part, 0), Acknowledged()

    for _ in range(kills):
        # It begins a little earlier than it was told, as if acknowledgements had been lost.
        first = max(0, acknowledged.turns - random.randint(1, 3))
        lines, lag = random.randint(0, 40), random.randint(0, LAG)
        ended = run.killed_after(lines, lag, work, database, first)

        acknowledged.take(ended)
        with cutbank.open(database) as store:
            acknowledged.check(store)
            acknowledged.check_boundaries(store.session("session"))

    assert acknowledged.turns > kills
    assert len(acknowledged.boundaries) >= (kills if work == "compacts" else 0)
    with cutbank.open(database) as store:
        session = store.session("session")
        session.append(*(Block.user("goes on. " * 900) for _ in range(4)))
        outcome = session.compact(victims.POLICY, limit=victims.LIMIT)
        view = session.view()
        assert view.boundary is not None
        assert view.boundary.originator_version == outcome.boundary
        assert verify(store).is_ok


def transcript(path: Path) -> None:
    """A transcript in which the user rewinds, and the source compacts."""
    talk = Talk()
    for number in range(60):
        asked = talk.user(f"question {number} " * 9)
        talk.says(f"m{number}", text(f"answer {number}"))
        talk.calls(f"m{number}", f"call {number}")
        talk.result(f"call {number}", f"result {number} " * (900 if number % 9 == 0 else 5))
        if number % 20 == 10:
            # The question is asked again, in other words.
            talk.last = talk.entries[-5]["uuid"] if number else asked
            talk.user(f"question {number}, asked again")
            talk.says(f"again{number}", text(f"another answer {number}"))
        if number % 30 == 25:
            talk.boundary()
            talk.summary(f"what was said up to {number}")
    path.write_bytes(talk.raw())


def content(store: SessionStore) -> dict[str, list[Any]]:
    """All events of all streams, but for when and in which segments they were stored."""
    left_out: Any = {"timestamp": True, "block": {"origin": {"segment", "span"}}}
    mapper, recorder = store.events.mapper, store.events.recorder
    return {
        f"{stream.session} {stream.lineage}": [
            mapper.to_domain_event(row).model_dump(exclude=left_out)
            for row in recorder.select_events(stream.originator_id)
        ]
        for stream in recorder.select_streams()
    }


@rounds(2, 20)
def test_an_import_that_is_killed_is_completed_by_the_next(
    tmp_path: Path, run: Processes, part: int, kills: int
) -> None:
    file = tmp_path / "5e551011-0000-4000-8000-000000000000.jsonl"
    random = dice(part, 2)
    transcript(file)
    with cutbank.open(tmp_path / "whole.db") as store:
        (report,) = import_path(store, file)
        assert (report.complete, report.errors) == (True, [])
        whole, entries = content(store), report.entries
    stopped_inside = 0

    for kill in range(kills):
        path = tmp_path / f"{kill}.db"
        size = random.choice([1, 500, 5_000, 50_000])
        lines, lag = random.randint(0, entries), random.randint(0, LAG)
        run.killed_after(lines, lag, "imports", path, file, size)

        with cutbank.open(path) as store:
            assert verify(store).violations == []
            before = content(store)
            for stream, events in before.items():
                assert events == whole[stream][: len(events)]
            stopped_inside += 0 < sum(map(len, before.values())) < sum(map(len, whole.values()))

            (completed,) = import_path(store, file)
            (repeated,) = import_path(store, file)

            assert (completed.complete, repeated.added) == (True, 0)
            assert content(store) == whole
            assert verify(store).violations == []

    assert stopped_inside > 0


# Not killed


def check_forks(name: str, database: str) -> None:
    """Run a check in a process of its own, which holds nothing that other tests have left."""
    program = [sys.executable, str(FORKS), name, database]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_a_child_that_is_forked_while_threads_write_goes_on_at_once(database: str) -> None:
    check_forks("forks", database)


def test_a_closed_store_does_not_keep_a_child_from_leaving_the_others(database: str) -> None:
    check_forks("closed", database)


def test_a_forked_child_does_not_end_the_sessions_of_its_parents_threads(
    postgres_database: str,
) -> None:
    check_forks("waiting", postgres_database)
