"""Reads tau-bench runs: an array of records with OpenAI Chat messages."""

from collections.abc import Iterator

from ..entry_steps import refuse_line
from ..fields import JsonDict
from ..format import Format
from ..json_lines import SourceLine
from ..source import TranscriptSource
from ..steps import ImportStep, SessionStart
from .dialect_detection import TAU_MESSAGES, is_tau_record
from .message_file_reader import SessionKeys, read_messages
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
    document = source.document or SourceLine(1, source.size, problem="no JSON document")
    if document.problem:
        yield from refuse_line(document, document.problem)
        return
    keys = SessionKeys(source.stem)
    end = 0
    for index, record in enumerate(document.value):
        before, end = end, document.end * (index + 1) // len(document.value)
        line = SourceLine(index + 1, end, value=record, has_odd_numbers=document.has_odd_numbers)
        if isinstance(record, dict) and isinstance(messages := record.get(_MESSAGES_FIELD), list):
            yield SessionStart(keys.make_distinct(_make_key(keys.stem, record)))
            conversation = MessageReader(CHAT_DIALECT, TAU_MESSAGES, line, is_on_a_line=True)
            yield from read_messages(conversation, messages, before)
        else:
            yield from refuse_line(line, f"expected a record with a list `{_MESSAGES_FIELD}`")


def _make_key(stem: str, record: JsonDict) -> str:
    named = [record[name] for name in _KEY_FIELDS if isinstance(record.get(name), int | str)]
    mark = "".join(f"-{name}" for name in named)
    return stem if mark and stem.endswith(mark) else f"{stem}{mark}"


FORMAT = Format(
    name=TAU_MESSAGES,
    description="runs of tau-bench",
    recognizes=recognizes,
    read=read,
    suffix=".json",
)
