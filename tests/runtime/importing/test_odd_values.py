"""No number, and no file, that a source got wrong spoils anything else that is stored."""

import json
import re
from itertools import cycle
from pathlib import Path

from claude_code_talk import Talk
from opened_stores import store_of

import cutbank
from cutbank import Block, SessionStore, StoredSession
from cutbank.adapters.runtime.importing.importer import import_path
from cutbank.domain.session_events import Usage

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
        talk.user("words")
        lines = [json.dumps(entry | {"sessionId": key}) for entry in talk.entries]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")

    reports = {Path(one.path).name: one for one in import_path(store, folder)}

    assert reports["b.jsonl"].complete
    assert [session.key for session in store.sessions()] == ["whole"]
    (error,) = reports["a.jsonl"].errors
    assert error.startswith(f"{folder / 'a.jsonl'}: ")
    assert "\n" not in error
