"""A clock that is set back changes nothing: order is by position, and time is only told."""

from datetime import timedelta
from pathlib import Path

from clock import Clock
from faulty import check_log, texts
from short_sessions import positions

import cutbank
from cutbank import Block, CompactionOptions, ToolCall, ToolResult


def test_a_clock_that_goes_back_changes_no_order(tmp_path: Path, clock: Clock) -> None:
    said = []
    for number in range(12):
        # Each time a new process, and the clock is a day further back.
        with cutbank.open(tmp_path / "log.db", clock=clock) as store:
            session = store.session("session")
            session.append(
                Block.user(f"question {number} " * 20),
                ToolCall(tool_call_id=f"{number}", name="read", arguments={}),
            )
            clock.now -= timedelta(days=1)
            session.append(
                ToolResult(tool_call_id=f"{number}", content=f"answer {number} " * 20),
                key=f"answer {number}",
            )
            said += [f"question {number} " * 20, "{}", f"answer {number} " * 20]
            if number % 4 == 3:
                session.compact(
                    limit=2_000, options=CompactionOptions(settings={"keep_tokens": "100"})
                )
                clock.now -= timedelta(days=100)

    with cutbank.open(tmp_path / "log.db", clock=clock) as store:
        session = store.session("session")
        rows = store.events.recorder.select_events(session.log.id)
        times = [store.events.mapper.to_domain_event(row).timestamp for row in rows]
        assert times[-1] < times[0] - timedelta(days=200)
        assert [text for text in texts(session) if text] == [text for text in said if text]
        view = session.view()
        assert view.boundary
        assert view.entries[-1].text == said[-1]
        assert positions(view) == sorted(positions(view))
        assert session.view(at=session.position).fingerprint == view.fingerprint
        again = ToolResult(tool_call_id="3", content="answer 3 " * 20)
        assert session.append(again, key="answer 3").last < session.position
        check_log(store)
