"""What a worker asks of the index is answered by an index of SQLite's, however many sessions."""

from datetime import timedelta

import pytest
from resting import SetClock, Working, pass_time, talk

from cutbank import SessionStore
from cutbank.adapters.runtime.idle.due_sessions import DueSessions


@pytest.mark.parametrize("namespaces", [(), ("default", "another")])
def test_nothing_that_a_worker_asks_reads_a_whole_table(
    store: SessionStore, working: Working, clock: SetClock, namespaces: tuple[str, ...]
) -> None:
    talk(store.session("due"))
    working()
    pass_time(clock, 600)
    models = store.read_models
    models.catch_up(search=False)
    sessions, asked = DueSessions(models, namespaces), list[str]()

    connection = models.file.reader.conn
    connection.set_trace_callback(asked.append)
    (due,) = sessions.at(clock.now, 4)
    assert sessions.count(clock.now) == 1
    assert sessions.next_at(clock.now - timedelta(hours=1)) == due.due_at
    sessions.model_of(due)
    sessions.spent_on(due)
    sessions.affordable_at(clock.now, 1.0)
    connection.set_trace_callback(None)

    assert len(asked) == 3 * (len(namespaces) or 1) + 3
    steps = [
        step for query in asked for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {query}")
    ]
    assert steps
    assert [step for step in steps if step.startswith("SCAN")] == []
