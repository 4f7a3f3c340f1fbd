"""What was imported is told by its source's clock; the time of the import is nobody's."""

from datetime import UTC, datetime
from pathlib import Path

from clock import Clock
from hypothesis import given
from hypothesis import strategies as st
from transcripts import import_file, samples

import cutbank
from cutbank import Block, StoredSession
from cutbank.domain.blocks import Origin
from cutbank.projections.audit_entries import AuditedBlock, ModelCallEntry, find_source_time

IMPORTED = datetime(2099, 1, 1, tzinfo=UTC)
"""No source tells of so late a time."""


def said_of(session: StoredSession) -> list[AuditedBlock]:
    return [one for one in cutbank.audit(session).read_between() if isinstance(one, AuditedBlock)]


def of_source(time: str | None) -> Origin:
    return Origin(format="pi", time=time)


def test_no_block_or_call_of_an_import_is_told_to_be_of_the_time_of_the_import(
    tmp_path: Path,
) -> None:
    with cutbank.open(tmp_path / "x.db", clock=lambda: IMPORTED) as store:
        for number, path in enumerate(samples()):
            import_file(store, path, namespace=str(number))

        for session in store.sessions():
            for one in cutbank.audit(session).read_between():
                if isinstance(one, AuditedBlock) and one.block.origin is not None:
                    assert one.time is None or one.time < IMPORTED, session
                elif isinstance(one, ModelCallEntry) and one.reported is not None:
                    told = find_source_time(one.reported)
                    assert told is None or told < IMPORTED, session


DATED: list[tuple[Block, int | None]] = [
    (Block.user("hi"), 2026),
    (Block.user("hi", origin=of_source("2020-05-01T00:00:00Z")), 2020),
    (Block.user("hi", origin=of_source("1600000000.5")), 2020),
    (Block.user("hi", origin=of_source("1600000000500")), 2020),
    (Block.user("hi", origin=of_source("yesterday")), None),
    (Block.user("hi", origin=of_source("0001-01-01T00:00:00+14:00")), None),
    (Block.user("hi", origin=of_source(None)), None),
    (Block.user('{"timestamp": "2020-05-01"}', origin=of_source(None)), None),
    (Block.note('{"timestamp": "2020-05-01"}', origin=of_source(None)), 2020),
    (
        Block.note('{"info": {"time": {"created": 1600000000500}}}', origin=of_source(None)),
        2020,
    ),
    (Block.note('{"timestamp": {"of": "no use"}}', origin=of_source(None)), None),
    (Block.note("2020-05-01", origin=of_source(None)), None),
    (Block.note('{"timestamp": "2020-05-01"}'), 2026),
]


def test_what_its_source_dates_has_that_date_and_what_nobody_dates_has_none() -> None:
    with cutbank.open(":memory:", clock=Clock()) as store:
        session = store.session("s")
        session.append(*(block for block, _ in DATED))

        said = said_of(session)

    found = [(one.block, one.time.year if one.time else None) for one in said]
    assert found == DATED


@given(st.text(), st.text() | st.none())
def test_whatever_a_source_writes_is_a_time_or_none(text: str, time: str | None) -> None:
    with cutbank.open(":memory:", clock=Clock()) as store:
        session = store.session("s")
        session.append(Block.note(text, origin=of_source(time)))

        (said,) = said_of(session)

    assert said.time is None or said.time.tzinfo is UTC
