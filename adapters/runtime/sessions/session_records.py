"""Stores and reads a session's records: a program's state by name, no part of the conversation."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from pydantic import JsonValue, TypeAdapter, ValidationError

from ....domain.errors import ConflictError, InvalidPositionError, InvalidSettingError
from ....domain.event import MAX_COUNT
from ....domain.ranges import Ranges
from ....domain.session import Session
from ....domain.session_events import RecordEvent, RecordPut
from ...storage.event_log.log_tables import AppendKey
from ...storage.event_log.storage_errors import translate_storage_errors
from .session_log import SessionLog, check_name, make_used_key_error

MAX_RECORD_BYTES = 256_000_000
"""The largest value; a database stores no row of a gigabyte, and memory has to hold it twice."""
MAX_NAME_BYTES = 1_000
"""The longest name, which an index of PostgreSQL has to hold."""
_FIRST_PAGE_RECORDS, _PAGE_RECORDS = 10, 50
"""Often only a few are taken, so a first page of names is small."""
_END = "\U0010ffff" * MAX_NAME_BYTES
"""Comes after every name."""
_JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)


@dataclass(frozen=True, slots=True)
class Record:
    """A value that was put under a name, or what removed it."""

    name: str
    position: int
    """Its place in the session, among the blocks."""
    value: JsonValue | bytes
    put_at: datetime
    is_removed: bool = False
    """The name has no value from here on; `value` is None."""


class SessionRecords:
    """The records of one session: checkpoints, an agent's state, whatever a program has to keep.

    They stand in the session's stream, and outside turns, views, counts, search and idle work.
    Retractions leave them alone. A fork begins with those that its parent had.
    """

    def __init__(self, log: SessionLog) -> None:
        self._log = log

    def put(
        self,
        name: str,
        value: JsonValue | bytes,
        *,
        key: str | None = None,
        expect: int | None = None,
    ) -> int:
        """Store a value under a name, durably before this returns; return its position.

        Earlier values stay in the name's history. `key` names the call: the same key again stores
        nothing and returns the first position. `expect` is the position of the value that this one
        takes the place of, 0 for none. Raises ConflictError if another one is there, or if the key
        was used for something else; InvalidSettingError for what is neither JSON nor bytes, or
        larger than 256 MB.
        """
        text, data = _encode_value(name, value)
        check_name("record name", name)
        if len(name.encode()) > MAX_NAME_BYTES:
            raise InvalidPositionError(
                f"the record name {name[:60]!r}... has {len(name.encode()):,} bytes, and one may"
                f" have {MAX_NAME_BYTES:,}: use a shorter one"
            )

        def decide(session: Session) -> tuple[int, int]:
            if expect is not None:
                self._check_newest(name, expect, session.version)
            position = session.put_record(name, text, data)
            return position, position

        with translate_storage_errors(self._log.context.name):
            done = self._log.decide(decide, key=key)
            if not isinstance(done, AppendKey):
                return done[0]
            first = self._log.read_event(done.first)
            if not (
                isinstance(first, RecordPut)
                and (first.name, first.text, first.data) == (name, text, data)
            ):
                raise make_used_key_error(done)
            return done.first

    def remove(self, name: str, *, expect: int | None = None) -> bool:
        """Let a name have no value any more; return whether it had one. Its history stays."""

        def decide(session: Session) -> bool:
            if expect is not None:
                self._check_newest(name, expect, session.version)
            if self._find(name, session.version) is None:
                return False
            session.remove_record(name)
            return True

        with translate_storage_errors(self._log.context.name):
            return self._log.decide(decide) is True

    def get(self, name: str, *, at: int | None = None) -> Record | None:
        """Return the newest value of a name, or its value at a position; None if it has none."""
        with translate_storage_errors(self._log.context.name):
            return self._find(name, MAX_COUNT if at is None else at)

    def history(
        self, name: str, *, before: int | None = None, limit: int | None = None
    ) -> Iterator[Record]:
        """Yield what was put under a name, and removals, newest first and before a position."""
        end = MAX_COUNT if before is None else before
        with translate_storage_errors(self._log.context.name):
            while limit is None or limit > 0:
                wanted = _PAGE_RECORDS if limit is None else min(limit, _PAGE_RECORDS)
                page = self._find_positions(name, end, wanted)
                yield from reversed(self._read(page))
                if len(page) < wanted:
                    return
                end = page[-1]
                limit = None if limit is None else limit - wanted

    def newest(
        self,
        prefix: str = "",
        *,
        after: str | None = None,
        before: str | None = None,
        limit: int | None = None,
        descending: bool = False,
    ) -> Iterator[Record]:
        """Yield the newest value of each name that has one, by name.

        Only of names that begin with `prefix`, and lie between two names, both excluded.
        """
        first, end = prefix, _find_prefix_end(prefix)
        first = first if after is None else max(first, f"{after}\1")  # no name holds NUL
        end = end if before is None else min(end, before)
        size = _FIRST_PAGE_RECORDS
        with translate_storage_errors(self._log.context.name):
            while limit is None or limit > 0:
                wanted = size if limit is None else min(limit, _PAGE_RECORDS)
                names = self._find_names(first, end, wanted, descending=descending)
                page = {one.name: one for one in self._read([at for at in names.values() if at])}
                for name in names:
                    if name in page and not page[name].is_removed:
                        yield page[name]
                        limit = None if limit is None else limit - 1
                if len(names) < wanted:
                    return
                last, size = next(reversed(names)), min(2 * size, _PAGE_RECORDS)
                if descending:
                    end = last
                else:
                    first = f"{last}\1"

    def _check_newest(self, name: str, expected: int, version: int) -> None:
        found = self._find(name, version)
        if (found.position if found else 0) != expected:
            there = f"at #{found.position}" if found else "not there"
            raise ConflictError(
                f"the record {name!r} is {there}, not at #{expected}: read it again before you put"
                if expected
                else f"the record {name!r} is {there} already: read it before you put"
            )

    def _find(self, name: str, at: int) -> Record | None:
        found = self._read(self._find_positions(name, at + 1, 1))
        return found[0] if found and not found[0].is_removed else None

    def _find_positions(self, name: str, before: int, limit: int) -> list[int]:
        found: list[int] = []
        for segment in reversed(self._log.chain().segments):
            end = before if segment.last is None else min(before, segment.last + 1)
            found += self._log.events.recorder.select_record_positions(
                segment.originator_id, name, end, limit - len(found)
            )
            if len(found) == limit:
                break
        return found

    def _find_names(
        self, first: str, end: str, limit: int, *, descending: bool
    ) -> dict[str, int | None]:
        """Return the first names of the session and of those that it is forked from, in order.

        Each with its newest position; None if all came after the fork.
        """
        select = self._log.events.recorder.select_record_names
        found: dict[str, int | None] = {}
        for one in self._log.chain().segments:
            names = select(
                one.originator_id, first, end, limit, last=one.last, descending=descending
            )
            found |= {name: position or found.get(name) for name, position in names}
        return dict(sorted(found.items(), reverse=descending)[:limit])

    def _read(self, positions: list[int]) -> list[Record]:
        """Return the records at these positions, in their order in the log."""
        if not positions:
            return []
        log = self._log.events.read(self._log.chain(), Ranges.of(positions), with_records=True)
        return [_make_record(cast(RecordEvent, recorded.event)) for recorded in log]


def _make_record(event: RecordEvent) -> Record:
    position, time = event.originator_version, event.timestamp
    if not isinstance(event, RecordPut):
        return Record(event.name, position, None, time, is_removed=True)
    value = event.data if event.text is None else json.loads(event.text)
    return Record(event.name, position, value, time)


def _encode_value(name: str, value: JsonValue | bytes) -> tuple[str | None, bytes | None]:
    """Return a value as JSON text, or as bytes. Raises InvalidSettingError if it is neither."""
    if isinstance(value, bytes):
        text, data, size = None, value, len(value)
    else:
        try:
            text = json.dumps(
                _JSON.validate_python(value, strict=True),
                ensure_ascii=False,
                allow_nan=False,
                separators=(",", ":"),
            )
        except (ValidationError, ValueError, RecursionError) as error:
            reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
            raise InvalidSettingError(
                f"the value of {name!r} is neither JSON nor bytes: {reason}"
            ) from None
        data, size = None, len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_RECORD_BYTES:
        raise InvalidSettingError(
            f"the value of {name!r} has {size:,} bytes, and a record may have"
            f" {MAX_RECORD_BYTES:,}: keep it in a file, and put its path"
        )
    return text, data


def _find_prefix_end(prefix: str) -> str:
    """Return the first name after all that begin with `prefix`."""
    known = prefix.rstrip("\U0010ffff")
    if not known:
        return _END
    following = ord(known[-1]) + 1
    # No character lies between these two.
    return known[:-1] + chr(0xE000 if following == 0xD800 else following)
