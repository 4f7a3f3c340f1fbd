"""What processes do until they are killed, and say what they were told is stored."""

import ctypes
import os
import sqlite3
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from random import Random

import kill_steps
from databases import connected_to
from transcripts import import_path

import cutbank
from cutbank import Block, CompactionOptions, StoredSession, ToolCall, ToolResult, verify
from cutbank.adapters.runtime.compaction.outcome import CompactionOutcome
from cutbank.adapters.runtime.importing import transcript_import
from cutbank.adapters.runtime.maintenance import Backups, read_moment
from cutbank.adapters.settings.settings import MaintenanceSettings
from cutbank.adapters.storage.read_models.read_models import ReadModels
from cutbank.domain.blocks import AnyBlock
from cutbank.domain.errors import CutbankError, NothingToCompactError, StalePlanError
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom
from cutbank.domain.summaries.summarizer import ListingSummarizer

APPEND_RAW = (
    "INSERT INTO stored_events (originator_id, originator_version, topic, subject, tokens, digest,"
    " carried, state) SELECT gen_random_uuid(), 1, topic, subject, tokens, digest, carried, state"
    " FROM stored_events WHERE notification_id = 1 RETURNING notification_id"
)
"""One more event on a PostgreSQL server, in a transaction of the test's own."""
LIMIT = 4_000
POLICY = ReserveHeadroom(reserve_tokens=500, keep_tokens=600)


def say(*words: object) -> None:
    os.write(1, f"{' '.join(map(str, words))}\n".encode())


def warm_up() -> None:
    """Load whatever is loaded when it is first needed."""
    with cutbank.open(":memory:") as store:
        session = store.session("session")
        session.append(*(Block.user(f"words {number} " * 99) for number in range(40)))
        session.compact(POLICY, limit=LIMIT)
        session.view()
        verify(store)


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


def append_turn(session: StoredSession, number: int) -> None:
    """Append part by part, and acknowledge each part after it returned."""
    for part, blocks in enumerate(turn(number)):
        done = session.append(*blocks, key=f"{number}.{part}")
        say("ack", number, part, done.first, done.last)


def request(session: StoredSession, number: int, *, activate: bool = True) -> CompactionOutcome:
    """Compact under this number, by which a repetition is known."""
    # Summaries that cost no time: what counts is how they are stored.
    options = CompactionOptions(
        idempotency_key=f"compaction {number}", activate=activate, summarizers=[ListingSummarizer()]
    )
    return session.compact(POLICY, limit=LIMIT, options=options)


def compact(session: StoredSession, number: int) -> None:
    """Compact; every third boundary is prepared first."""
    with suppress(NothingToCompactError, StalePlanError):
        outcome = request(session, number, activate=number % 3 > 0)
        say("boundary", number, outcome.boundary)
        if number % 3 == 0:
            session.activate()


# At random moments


def appends(address: str, first: int, *, compacts: bool = False) -> None:
    with cutbank.open(address) as store:
        session = store.session("session")
        for number in range(first, first + 1_000):
            append_turn(session, number)
            if compacts:
                compact(session, number)


def compacts(address: str, first: int) -> None:
    appends(address, first, compacts=True)


def imports(address: str, transcript: str, characters: int) -> None:
    transcript_import.MAX_BATCH_CHARACTERS = characters
    with cutbank.open(address) as store:
        for _ in import_path(store, Path(transcript), progress=lambda done, _: say("ack", done)):
            pass


def catches_up(address: str, path: str, page: int) -> None:
    """Bring read models up to date, so many events at a time."""
    with cutbank.open(address) as store:
        models = ReadModels(store.events, path)
        models._index.page = models._words.page = page
        say("begins")
        models.catch_up(lambda done, total: say("batch"))
        models.close()


# At a step


def steps(what: str, address: str, number: int, *words: str) -> None:
    """One operation, whose steps count; `counted` says how many there were."""
    if what in {"open", "migrate"}:
        kill_steps.begin()
    with cutbank.open(address) as store:
        if what == "migrate":
            return
        session = store.session("session")
        if what == "activate":
            request(session, number, activate=False)
        if what == "extend":
            session.compact(POLICY, limit=LIMIT, options=CompactionOptions(activate=False))
            for more in range(number, number + 30):
                append_turn(session, more)
        if what == "close":
            append_turn(session, number)
        if what == "erase":
            plant(store)
        kill_steps.begin()
        match what:
            case "append":
                done = session.append(Block.note(f"note {number}"))
                say("note", number, done.first)
            case "batch":
                with store.batch():
                    done = session.append(Block.note(f"note {number}"))
                    session.records.put("state", "large " * 9_000)
                    store.session("other").append(Block.user("1"), Block.user("2"))
                say("note", number, done.first)
            case "turn":
                append_turn(session, number)
            case "boundary":
                outcome = request(session, number)
                say("boundary", number, outcome.boundary)
            case "activate":
                say("activated", number, session.activate())
            case "extend":
                view = session.loop(policy=POLICY, limit=LIMIT).prepare()
                say("extended", number, view.boundary and view.boundary.previous)
            case "projection":
                store.read_models.catch_up()
                say("projected", store.read_models.position)
            case "backup":
                make_backup(store, Path(words[1]))
            case "erase":
                store.erase("gone", by="a victim")
                say("erased", number)
            case "import":
                list(import_path(store, Path(words[0])))
                say("imported", number)
            case _:
                pass


def plant(store: cutbank.SessionStore) -> None:
    """Say a word in a session of its own, and index it."""
    session = store.session("gone", title="planted")
    for number in range(30):
        session.append(Block.user(f"planted {number}"), key=f"planted {number}")
    session.append(Block.user("planted, and large " * 1_000))
    session.records.put("planted", {"planted": "state"})
    assert len(store.search("planted", limit=99)) == 31


def make_backup(store: cutbank.SessionStore, folder: Path) -> None:
    """Make the next backup a day after the newest one."""
    now = max((read_moment(one.name) for one in folder.glob("*Z.db")), default=store.events.clock())
    now += timedelta(days=1)
    store.events.clock = lambda: now
    Backups(store, MaintenanceSettings(backup_folder=str(folder), backup_keep=2)).run_due(now)


def backs_up(address: str, folder: str) -> None:
    with cutbank.open(address) as store:
        make_backup(store, Path(folder))


def counted(what: str, address: str, number: int, *words: str) -> None:
    """Say how many steps the operation has, which is not killed."""
    steps(what, address, number, *words)
    say("steps", len(kill_steps.statements))


# All at once


def joins(address: str, number: int) -> None:
    """Open what others open at the same moment, say something, and leave with them."""
    with cutbank.open(address) as store:
        session = store.session("joined")
        done = session.append(Block.user(f"{number} was here"), key=f"{number}")
        say("ack", number, done.last)


def writes(address: str, number: int, times: int) -> None:
    with cutbank.open(address) as store:
        session = store.session(f"session {number}")
        for count in range(times):
            session.append(Block.user(f"{count}"), Block.assistant(f"{count} " * 3_000))


def overlaps(address: str, number: int, times: int) -> None:
    """Append among transactions that take their time, or are undone after they drew an id."""
    chance = Random(number)  # noqa: S311 - nothing here is secret
    with cutbank.open(address) as store, connected_to(address) as raw:
        shared, own = store.session("shared"), store.session(f"writer {number}")
        for _ in range(times):
            match chance.randrange(12):
                case 0:  # what others may be first at, and what then draws ids that nobody uses
                    shared.append(Block.user("shared"))
                case 1:
                    own.append(*(Block.assistant(f"{n}") for n in range(10)))
                case 2 | 3 as undone:
                    raw.execute("BEGIN")
                    raw.execute(APPEND_RAW)
                    raw.execute("SELECT pg_sleep(%s)", (chance.random() / 100,))
                    raw.execute("ROLLBACK" if undone == 3 else "COMMIT")
                case _:
                    own.append(Block.user("own"))


def leaves_a_log(path: str, times: int) -> None:
    with cutbank.open(path) as store:
        session = store.session("session")
        for number in range(times):
            session.append(Block.user(f"words {number}"))
            say("ack", number)
        os.kill(os.getpid(), 9)


def sqlite_shell(path: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute("SELECT count(*) FROM stored_events").fetchone()
    connection.close()


# On a disk that fails

KINDS = {"write": 1, "sync": 2, "read": 4, "remove": 8, "cut": 16, "any": 1 | 2 | 8 | 16}


def disk(kind: str, nth: int, error: int, *, lasting: bool) -> None:
    """Let the n-th call of that kind fail; see `faulty_disk.c`."""
    ctypes.CDLL(None).faulty_disk(KINDS[kind] if nth else 0, nth, error, int(lasting))


def on_a_faulty_disk(address: str, kind: str, nth: int, error: int, lasting: bool) -> None:
    """Append while the disk fails, say each error, and go on when it works again."""
    failures = 0
    with cutbank.open(address) as store:
        session = store.session("session")
        append_turn(session, 0)
        disk(kind, nth, error, lasting=lasting)
        for number in range(1, 13):
            try:
                append_turn(session, number)
                texts = len(session.recall(search="asks"))
            except CutbankError as refusal:
                say("refused", type(refusal).__name__, refusal)
                failures += 1
                disk(kind, 0, 0, lasting=False)
                append_turn(session, number)
                texts = len(session.recall(search="asks"))
            assert texts == number + 1
        disk(kind, 0, 0, lasting=False)
        assert verify(store).violations == []
    say("failures", failures)


def on_a_disk_that_kills(address: str, kind: str, nth: int, first: int) -> None:
    """Come and go; at the n-th call that writes, half of it is written, and that was all."""
    disk(kind, nth, 0, lasting=False)
    for number in range(first, first + 3):
        with cutbank.open(address) as store:
            append_turn(store.session("session"), number)
    disk(kind, 0, 0, lasting=False)
