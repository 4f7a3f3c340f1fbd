"""What a worker asks of the index is answered by an index of SQLite's, however many sessions."""

from datetime import timedelta

from resting import SetClock, Working, pass_time, talk

from cutbank import SessionStore
from cutbank.adapters.runtime.idle.due_sessions import DueSessionIndex


def test_nothing_that_a_worker_asks_reads_a_whole_table(
    store: SessionStore, working: Working, clock: SetClock
) -> None:
    talk(store.session("due"))
    working()
    pass_time(clock, 600)
    models = store.read_models
    models.catch_up(search=False)
    namespaces = ("default", "another")
    sessions, asked = DueSessionIndex(models, namespaces), list[str]()

    connection = models.file.reader
    connection.set_trace_callback(asked.append)
    (due,) = sessions.find_due(clock.now, 4)
    assert sessions.count_due(clock.now) == 1
    assert sessions.find_next_due(clock.now - timedelta(hours=1)) == due.due_at
    sessions.find_model(due)
    sessions.read_session_spend(due)
    sessions.find_affordable_time(clock.now, 1.0)
    connection.set_trace_callback(None)

    assert len(asked) == 3 * len(namespaces) + 3
    steps = [
        step for query in asked for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {query}")
    ]
    assert steps
    assert [step for step in steps if step.startswith("SCAN")] == []
