"""A process that is killed at any moment loses nothing that it was told is stored."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from inspect import getsource
from pathlib import Path
from random import Random
from typing import Any

import pytest
from claude_code_talk import Talk, text

import cutbank
from cutbank import Block, SessionStore, StoredSession, ToolCall, ToolResult
from cutbank.adapters import transcript_import
from cutbank.adapters.importer import import_path
from cutbank.adapters.sample_session import write_sample
from cutbank.adapters.verifier import verify
from cutbank.domain.blocks import AnyBlock
from cutbank.domain.errors import NothingToCompactError, StalePlanError
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes as POSIX does")

KILLS = pytest.mark.parametrize("kills", [3, pytest.param(40, marks=pytest.mark.slow)])
SEED = 20260310
LAG = 100_000
"""Up to some milliseconds, which is longer than an append takes."""
LIMIT = 4_000
POLICY = ReserveHeadroom(reserve_tokens=500, keep_tokens=600)


def dice(number: int) -> Random:
    return Random(SEED + number)  # noqa: S311 - nothing here is secret


def turn(number: int) -> list[list[AnyBlock]]:
    """The appends of a turn; of every fifth one, an append that takes a while."""
    call, large = f"call {number}", 20_000 if number % 5 == 0 else 400
    return [
        [Block.user(f"{number} asks")],
        [
            Block.assistant(f"{number} answers", message_id=call),
            ToolCall(tool_call_id=call, name="read", arguments=f"{number}", message_id=call),
        ],
        [
            ToolResult(tool_call_id=call, content=f"{number} says, " * large),
            Block.developer(f"{number} is done"),
        ],
    ]


# What is killed


def say(*words: object) -> None:
    """A whole line at once: whoever is killed has said it, or nothing."""
    os.write(1, f"{' '.join(map(str, words))}\n".encode())


def appends(path: str, first: int) -> None:
    """Append turn after turn, and acknowledge each append after it returned."""
    with cutbank.open(path) as store:
        session = store.session("session")
        for number in range(first, first + 1_000):
            for part, blocks in enumerate(turn(number)):
                done = session.append(*blocks, key=f"{number}.{part}")
                say("ack", number, part, done.first, done.last)


def compacts(path: str, first: int) -> None:
    """Append and compact again and again; every third boundary is prepared first."""
    with cutbank.open(path) as store:
        session = store.session("session")
        for number in range(first, first + 1_000):
            for part, blocks in enumerate(turn(number)):
                done = session.append(*blocks, key=f"{number}.{part}")
                say("ack", number, part, done.first, done.last)
            with suppress(NothingToCompactError, StalePlanError):
                outcome = session.compact(
                    POLICY,
                    limit=LIMIT,
                    idempotency_key=f"compaction {number}",
                    activate=number % 3 > 0,
                )
                say("boundary", number, outcome.boundary)
                if number % 3 == 0:
                    session.activate()


def imports(path: str, transcript: str, characters: int) -> None:
    """Import in small batches, and say with each entry that it was read."""
    transcript_import.BATCH_CHARACTERS = characters
    with cutbank.open(path) as store:
        for _ in import_path(
            store,
            Path(transcript),
            progress=lambda done, _: say("ack", done),
        ):
            pass


PRELUDE = """
import os, sys, traceback
from contextlib import suppress
from pathlib import Path
import cutbank
from cutbank import Block, ToolCall, ToolResult
from cutbank.adapters import transcript_import
from cutbank.adapters.importer import import_path
from cutbank.domain.blocks import AnyBlock
from cutbank.domain.errors import NothingToCompactError, StalePlanError
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom
from cutbank.domain.summaries.extractive import Extractive
cutbank.open
"""
# Everything is loaded once; each worker is a copy of this process.
FORKS = """
for line in sys.stdin:
    worker = os.fork()
    if worker == 0:
        try:
            exec(line)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    say("pid", worker)
    say("gone", os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]))
"""


class Workers:
    """Runs workers, one after the other, and kills each when it has said enough."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        assert process.stdin
        assert process.stdout
        self.stdin, self.stdout = process.stdin, process.stdout

    def killed_after(self, lines: int, call: str, lag: int) -> list[list[str]]:
        """Run `call`, kill it when it has said so many lines, and return all that it said.

        `lag` is how far it counts before it kills: a kill comes at any moment.
        """
        self.stdin.write(f"{call}\n")
        self.stdin.flush()
        said: list[list[str]] = []
        worker, is_killed = 0, False
        while True:
            first, *rest = self.stdout.readline().split()
            match first:
                case "pid":
                    worker = int(rest[0])
                case "gone":
                    # Killed, or it came to its end before that.
                    assert int(rest[0]) in {-signal.SIGKILL, 0}
                    return said
                case _:
                    said.append([first, *rest])
            if worker and not is_killed and len(said) >= lines:
                is_killed = True
                for _ in range(lag):
                    pass
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)


@contextmanager
def workers() -> Iterator[Workers]:
    functions = "\n".join(getsource(code) for code in (say, turn, appends, compacts, imports))
    settings = f"LIMIT, POLICY = {LIMIT}, {POLICY!r}\n"
    process = subprocess.Popen(
        [sys.executable, "-c", PRELUDE + settings + functions + FORKS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Workers(process)
    finally:
        process.kill()
        process.communicate()


# What must be so afterwards


class Acknowledged:
    """What the workers were told is stored."""

    def __init__(self) -> None:
        self.appends: dict[tuple[int, int], tuple[int, int]] = {}
        self.boundaries: dict[int, int] = {}

    def take(self, said: list[list[str]]) -> None:
        for what, *told in said:
            number, *numbers = map(int, told)
            if what == "boundary":
                assert self.boundaries.setdefault(number, numbers[0]) == numbers[0]
            else:
                # Whoever repeats a key, after a crash or not, gets the first result.
                part, first, last = numbers
                assert self.appends.setdefault((number, part), (first, last)) == (first, last)

    @property
    def turns(self) -> int:
        return max((number for number, _ in self.appends), default=-1) + 1

    def check(self, store: SessionStore) -> None:
        """Everything acknowledged is there and equal, nothing is twice, and all of it is sound."""
        session = store.session("session")
        stored = session.recall(search="")
        told = [blocks for number in range(self.turns + 1) for blocks in turn(number)]
        expected = [block for blocks in told for block in blocks]
        assert [block.block for block in stored] == expected[: len(stored)]
        acknowledged = sum(len(turn(number)[part]) for number, part in self.appends)
        # At most the one append that was under way is stored and was not acknowledged.
        assert acknowledged <= len(stored) <= acknowledged + 2
        at = {block.position: block.block for block in stored}
        for (number, part), (first, last) in self.appends.items():
            blocks = turn(number)[part]
            assert at[last] == blocks[-1]
            assert [at[p] for p in range(last - len(blocks) + 1, last + 1)] == blocks
            assert last - first + 1 == len(blocks)
        verdict = verify(store)
        assert verdict.violations == []


@KILLS
def test_what_was_acknowledged_survives_a_kill(tmp_path: Path, kills: int) -> None:
    path, random, acknowledged = tmp_path / "log.db", dice(0), Acknowledged()

    with workers() as run:
        for _ in range(kills):
            # It begins a little earlier than it was told, as if acknowledgements had been lost.
            first = max(0, acknowledged.turns - random.randint(1, 3))
            call = f"appends({str(path)!r}, {first})"
            said = run.killed_after(random.randint(0, 30), call, lag=random.randint(0, LAG))

            acknowledged.take(said)
            with cutbank.open(path) as store:
                acknowledged.check(store)

    assert acknowledged.turns > kills
    with cutbank.open(path) as store:
        done = store.session("session").append(Block.user("goes on"))
        assert store.session("session").recall(done.last)[0].block.text == "goes on"
        assert verify(store).ok


@KILLS
def test_a_compaction_that_is_killed_leaves_all_or_nothing_of_it(
    tmp_path: Path, kills: int
) -> None:
    path, random, acknowledged = tmp_path / "log.db", dice(1), Acknowledged()

    with workers() as run:
        for _ in range(kills):
            first = max(0, acknowledged.turns - random.randint(1, 3))
            call = f"compacts({str(path)!r}, {first})"
            said = run.killed_after(random.randint(0, 40), call, lag=random.randint(0, LAG))

            acknowledged.take(said)
            with cutbank.open(path) as store:
                acknowledged.check(store)
                check_boundaries(store.session("session"), acknowledged)

    assert len(acknowledged.boundaries) >= kills
    with cutbank.open(path) as store:
        session = store.session("session")
        session.append(*(Block.user("goes on. " * 900) for _ in range(4)))
        outcome = session.compact(POLICY, limit=LIMIT)
        view = session.view()
        assert view.boundary is not None
        assert view.boundary.originator_version == outcome.boundary
        assert verify(store).ok


def check_boundaries(session: StoredSession, acknowledged: Acknowledged) -> None:
    for number, boundary in list(acknowledged.boundaries.items())[-5:]:
        again = session.compact(POLICY, limit=LIMIT, idempotency_key=f"compaction {number}")
        assert again.boundary == boundary
    view = session.view()
    served = [boundary for number, boundary in acknowledged.boundaries.items() if number % 3 > 0]
    if served:
        assert view.boundary is not None
        assert view.boundary.originator_version >= served[-1]
    if view.boundary:
        # A boundary never stands without its summary, nor is one served that was not activated.
        assert view.summary is not None
        assert view.summary.boundary == view.boundary.originator_version


def transcript(path: Path) -> None:
    """A transcript in which the user rewinds, and the source compacts."""
    talk = Talk()
    for number in range(90):
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
    """All events of all streams, but for when they were stored."""
    events = store.events
    return {
        f"{stream.session} {stream.lineage}": [
            events.mapper.to_domain_event(row).model_dump(exclude={"timestamp"})
            for row in events.recorder.select_events(stream.originator_id)
        ]
        for stream in events.recorder.select_streams()
    }


@KILLS
@pytest.mark.parametrize("write", [write_sample, transcript], ids=["sample", "rewinds"])
def test_an_import_that_is_killed_is_completed_by_the_next(
    tmp_path: Path, kills: int, write: Any
) -> None:
    file, random = tmp_path / "5e551011-0000-4000-8000-000000000000.jsonl", dice(2)
    write(file)
    with cutbank.open(tmp_path / "whole.db") as store:
        (report,) = import_path(store, file)
        assert report.complete
        assert report.errors == []
        whole, entries = content(store), report.entries
        views = [session.view().entries for session in store.sessions()]
    stopped_inside = 0

    with workers() as run:
        for kill in range(kills):
            path = tmp_path / f"{kill}.db"
            size = random.choice([1, 500, 5_000, 50_000])
            call = f"imports({str(path)!r}, {str(file)!r}, {size})"
            run.killed_after(random.randint(0, entries), call, lag=random.randint(0, LAG))

            with cutbank.open(path) as store:
                assert verify(store).violations == []
                before = content(store)
                for stream, events in before.items():
                    assert events == whole[stream][: len(events)]
                stopped_inside += 0 < sum(map(len, before.values())) < sum(map(len, whole.values()))

                (report,) = import_path(store, file)

                assert report.complete
                assert content(store) == whole
                assert verify(store).violations == []
                assert [len(session.view().entries) for session in store.sessions()] == [
                    len(entries) for entries in views
                ]
                (report,) = import_path(store, file)
                assert report.added == 0

    assert stopped_inside > 0
