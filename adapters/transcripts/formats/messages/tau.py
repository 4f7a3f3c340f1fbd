"""Reads and writes tau-bench runs: an array of records with OpenAI Chat messages."""

from collections.abc import Iterator
from typing import Any

from ..entry_steps import digest_text
from ..fields import JsonDict, drop_fields
from ..format import Format
from ..json_lines import SourceLine
from ..outgoing import OutgoingSession
from ..source import TranscriptSource
from ..steps import EntryEnd, ImportStep, RawEntry, SessionStart
from .dialect_detection import TAU_MESSAGES, is_tau_record
from .message_file_reader import BODY_ENTRY, SessionKeys, read_messages, report_no_session
from .message_file_writer import encode_messages, render_outgoing, restore_original
from .message_reader import MessageReader
from .openai_chat import CHAT_DIALECT

_MESSAGES_FIELD = "traj"
_KEY_FIELDS = ("task_id", "trial")


def recognizes(source: TranscriptSource) -> bool:
    first = source.first_values
    if len(first) > 1 or (first and not isinstance(first[0], list)):
        return False
    document = source.document
    value = document.value if document and not document.problem else None
    return isinstance(value, list) and bool(value) and is_tau_record(value[0])


def read(source: TranscriptSource) -> Iterator[ImportStep]:
    document = source.document
    if document is None or document.problem:
        reason = document.problem if document else None
        yield from report_no_session(
            document or SourceLine(1, source.size), reason or "no JSON document"
        )
        return
    keys = SessionKeys(source.stem)
    end = 0
    for index, record in enumerate(document.value):
        before, end = end, document.end * (index + 1) // len(document.value)
        line = SourceLine(index + 1, end, value=record, has_odd_numbers=document.has_odd_numbers)
        if isinstance(record, dict) and isinstance(record.get(_MESSAGES_FIELD), list):
            yield from _read_record(keys, line, record, before)
        else:
            yield from report_no_session(line, "expected a record with a list `traj`")


def _read_record(
    keys: SessionKeys, line: SourceLine, record: JsonDict, before: int
) -> Iterator[ImportStep]:
    yield SessionStart(keys.make_distinct(_make_key(keys.stem, record)))
    rest = drop_fields(record, _MESSAGES_FIELD)
    raw = line.to_json({"body": rest, "held": [[_MESSAGES_FIELD, None]]})
    yield RawEntry(f"{BODY_ENTRY}:{digest_text(raw)}", BODY_ENTRY, raw, line=0)
    yield EntryEnd("imported", before)
    conversation = MessageReader(CHAT_DIALECT, TAU_MESSAGES, line, is_on_a_line=True)
    yield from read_messages(conversation, record[_MESSAGES_FIELD], before)


def _make_key(stem: str, record: JsonDict) -> str:
    named = [record[name] for name in _KEY_FIELDS if isinstance(record.get(name), int | str)]
    mark = "".join(f"-{name}" for name in named)
    return stem if mark and stem.endswith(mark) else f"{stem}{mark}"


def write(outgoing: OutgoingSession) -> Iterator[bytes]:
    """Write an array of one record; of a session from another source, it has only messages."""
    came = restore_original(outgoing, CHAT_DIALECT, TAU_MESSAGES)
    if came is None:
        _, messages = render_outgoing(outgoing, CHAT_DIALECT)
        lists: dict[str | None, list[Any]] = {_MESSAGES_FIELD: next(iter(messages.values()))}
        came = {}, lists
    yield b"["
    pieces = list(encode_messages(*came))
    yield from pieces[:-1]
    yield b"}]\n"


FORMAT = Format(
    name=TAU_MESSAGES,
    description="runs of tau-bench",
    recognizes=recognizes,
    read=read,
    write=write,
    suffix=".json",
)
