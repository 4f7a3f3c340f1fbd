"""Runs of tau-bench: an array of records, each a session in the messages of OpenAI Chat."""

from collections.abc import Iterator
from typing import Any

from ..format import Format
from ..json_lines import Line
from ..outgoing import Outgoing
from ..reading.entry_steps import digest_of
from ..reading.fields import Item
from ..source import Source
from ..steps import Aside, Begin, EntryRead, Step
from .conversation import Conversation
from .openai_chat import DIALECT
from .reader import BODY, Keys, nothing, told
from .telling import TAU, is_traj
from .writer import as_it_came, rendered, spelt

_MESSAGES = "traj"
_NAMED_BY = ("task_id", "trial")


def recognises(source: Source) -> bool:
    """Whether this is an array of records of tau-bench."""
    first = source.first
    if len(first) > 1 or (first and not isinstance(first[0], list)):
        return False
    document = source.document
    value = document.value if document and not document.problem else None
    return isinstance(value, list) and bool(value) and is_traj(value[0])


def read(source: Source) -> Iterator[Step]:
    """A session a record."""
    document = source.document
    if document is None or document.problem:
        reason = document.problem if document else None
        yield from nothing(document or Line(1, source.size), reason or "no JSON document")
        return
    keys = Keys(source.stem)
    end = 0
    for index, record in enumerate(document.value):
        before, end = end, document.end * (index + 1) // len(document.value)
        line = Line(index + 1, end, value=record, odd=document.odd)
        if isinstance(record, dict) and isinstance(record.get(_MESSAGES), list):
            yield from _session(keys, line, record, before)
        else:
            yield from nothing(line, "expected a record with a list `traj`")


def _session(keys: Keys, line: Line, record: Item, before: int) -> Iterator[Step]:
    yield Begin(keys.distinct(_key(keys.stem, record)))
    rest = {name: value for name, value in record.items() if name != _MESSAGES}
    raw = line.json({"body": rest, "held": [[_MESSAGES, None]]})
    yield Aside(f"{BODY}:{digest_of(raw)}", BODY, raw, line=0)
    yield EntryRead("imported", before)
    conversation = Conversation(DIALECT, TAU, line, is_on_a_line=True)
    yield from told(conversation, record[_MESSAGES], before)


def _key(stem: str, record: Item) -> str:
    named = [record[name] for name in _NAMED_BY if isinstance(record.get(name), int | str)]
    mark = "".join(f"-{name}" for name in named)
    return stem if mark and stem.endswith(mark) else f"{stem}{mark}"


def write(outgoing: Outgoing) -> Iterator[bytes]:
    """An array of one record; of a session that is no run of tau-bench, one with messages only."""
    came = as_it_came(outgoing, DIALECT, TAU)
    lists: dict[str | None, list[Any]] = {}
    if came is not None:
        body, held = came.body()
        lists.update(held)
    else:
        _, messages = rendered(outgoing, DIALECT)
        body, lists[_MESSAGES] = {}, next(iter(messages.values()))
    yield b"["
    pieces = list(spelt(body, lists))
    yield from pieces[:-1]
    yield b"}]\n"


FORMAT = Format(
    name=TAU,
    what="runs of tau-bench",
    recognises=recognises,
    read=read,
    write=write,
    suffix=".json",
)
