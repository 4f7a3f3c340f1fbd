"""An import that is interrupted, not alone, or of odd values stores all that it can, once."""

import json
import re
from itertools import cycle
from pathlib import Path

import pytest
from claude_code_talk import SESSION, Talk
from opened_stores import store_of
from transcripts import import_file, import_path

import cutbank
from cutbank import Block, FileReport, SessionStore, StoredSession, Usage, verify
from cutbank.adapters.runtime.importing import transcript_import

from .conftest import talk_of, write


@pytest.fixture
def talk() -> Talk:
    """Two turns with a call each: eight entries."""
    return talk_of(SESSION, turns=2)


@pytest.fixture
def file(tmp_path: Path, talk: Talk, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the talk's transcript, of which each block is a batch of its own."""
    monkeypatch.setattr(transcript_import, "MAX_BATCH_CHARACTERS", 10)
    file = tmp_path / f"{SESSION}.jsonl"
    file.write_bytes(talk.raw())
    return file


def test_an_interrupted_import_is_marked_and_resumes(
    store: SessionStore, talk: Talk, file: Path
) -> None:
    def interrupt(done: int, _: int) -> None:
        if done > len(talk.raw()) // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(import_path(store, file, progress=interrupt))
    assert store.session(SESSION).info.incomplete_import == str(file)
    partial = store.session(SESSION).log.state.blocks

    report = import_file(store, file)

    assert 0 < partial < 8
    assert report.added == 8 - partial
    assert store.session(SESSION).info.incomplete_import is None
    assert len(store.session(SESSION).view().entries) == 8


def test_two_that_import_the_same_file_at_once_store_it_once(
    store: SessionStore, talk: Talk, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        talk.user(f"more of it, {number}" * 100)
    file.write_bytes(talk.raw())
    monkeypatch.setattr(transcript_import, "MAX_BATCH_CHARACTERS", 20_000)
    finished: list[FileReport] = []

    def heard(done: int, total: int) -> None:
        # The first one has stored a batch, and opened the session with it.
        if not finished and done > total / 2:
            with cutbank.open(store.name) as other:
                finished.append(import_file(other, file))

    (report,) = import_path(store, file, progress=heard)

    assert finished[0].complete
    assert report.complete
    assert report.errors == []
    assert report.added + finished[0].added == 58
    assert len(store.session(SESSION).recall(search="more of it")) == 50
    assert verify(store).is_ok


SAMPLES = Path(__file__).parents[2] / "samples"
NUMBERS = re.compile(r"(?<=[:\[,\s])-?\d+(?:\.\d+)?(?=\s*[,}\]\n])")


def test_a_number_that_nothing_can_hold_spoils_no_database(tmp_path: Path) -> None:
    numbers = cycle([str(2**63), str(-(10**310))])  # too long for 64 bits, and for a float
    for file in [*SAMPLES.rglob("*.json"), *SAMPLES.rglob("*.jsonl")]:
        spoilt = tmp_path / file.relative_to(SAMPLES)
        spoilt.parent.mkdir(parents=True, exist_ok=True)
        spoilt.write_text(NUMBERS.sub(lambda _: next(numbers), file.read_text("utf-8")), "utf-8")

    with cutbank.open(":memory:") as store:
        reports = list(import_path(store, tmp_path))

        assert not [error for one in reports for error in one.errors if "Error:" in error]
        assert store.search("the")
        assert store.read_models.rebuild()
        assert cutbank.get_idle_status(store)
        for session in store.sessions():
            cutbank.measure_context(session)


def test_a_log_that_holds_such_numbers_already_is_read(session: StoredSession) -> None:
    store = store_of(session)
    session.append(Block.user("words"))
    session.record_call(session.view(), call_id="call", usage=Usage(output=7), cost_usd=0.5)
    (row,) = store.events.recorder.select_events(session.log.id, gt=session.position - 1)
    spoilt = {"usage": {"input": 2**63, "output": 7}, "cost_usd": 10**310, "latency_s": -1}
    state = json.dumps(json.loads(row.state) | {"call_id": "another"} | spoilt).encode()
    store.events.recorder.insert_events(
        [row._replace(originator_version=row.originator_version + 1, state=state)]
    )

    store.read_models.catch_up()

    calls = store.read_models.file.fetch_rows(
        "SELECT prompt_tokens, output_tokens, cost_usd, latency_s FROM model_calls"
    )
    assert calls == [(None, 7, 0.5, None), (None, 7, None, None)]
    assert cutbank.measure_context(session).in_use.tokens == session.view().tokens


def test_a_file_at_fault_does_not_end_the_import_of_others(
    store: SessionStore, folder: Path
) -> None:
    for name, key in (("a.jsonl", "\0"), ("b.jsonl", "whole")):
        talk = Talk()
        talk.user("words", sessionId=key)
        write(folder, name, talk)

    reports = {Path(one.path).name: one for one in import_path(store, folder)}

    assert reports["b.jsonl"].complete
    assert [session.key for session in store.sessions()] == ["whole"]
    (error,) = reports["a.jsonl"].errors
    assert error.startswith(f"{folder / 'a.jsonl'}: ")
    assert "\n" not in error
