"""Reads files of messages: an array, a body with one, or a body a line."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from .....domain.session_events import Usage
from ..json_lines import Line, NestedTooDeeplyError
from ..reading.entry_steps import digest_of, refused
from ..reading.fields import Item, MalformedError, take_optional
from ..source import Source
from ..steps import Aside, Asked, Begin, Call, EntryRead, Problem, Step
from .conversation import Asking, Conversation, Dialect
from .telling import dialect_of, is_of_lines

BODY = "body"
"""What the note is called that keeps a body without its messages."""

_NO_MESSAGES = "expected messages, or a body that holds them"


def reader(dialect: Dialect) -> Callable[[Source], Iterator[Step]]:
    """The `read` of the format of that dialect."""

    def read(source: Source) -> Iterator[Step]:
        keys = Keys(source.stem)
        if not is_of_lines(source):
            document = source.document
            if document is None:
                yield from nothing(Line(1, source.size), "no JSON document")
            elif not _has_messages(dialect, document):
                yield from nothing(document, document.problem or _NO_MESSAGES)
            else:
                yield from _session(dialect, document, keys, 0, is_on_a_line=False)
            return
        before = 0
        for line in source.lines():
            if not _has_messages(dialect, line):
                yield from nothing(line, line.problem or _NO_MESSAGES)
            else:
                yield from _session(dialect, line, keys, before, is_on_a_line=True)
            before = line.end

    return read


@dataclass
class Keys:
    """Names sessions after the file and the words that they begin with.

    Files of one name are common, and none of them says what it is. Whatever begins alike in one
    file is numbered; a file that is named after its session holds it.
    """

    stem: str
    taken: set[str] = field(default_factory=set)

    def of(self, messages: list[Any], line: Line) -> str:
        """The key of the session that these messages are."""
        first = next((at for at, one in enumerate(messages) if not _is_system(one)), 0)
        try:
            mark = digest_of(line.json(messages[: first + 1]))[:8]
        except NestedTooDeeplyError:
            mark = digest_of(line.digest)[:8]
        return self.distinct(self.stem if mark in self.stem else f"{self.stem}-{mark}")

    def distinct(self, key: str) -> str:
        """The key, numbered where the file has it already."""
        number, name = 1, key
        while name in self.taken:
            number += 1
            name = f"{key}-{number}"
        self.taken.add(name)
        return name


def _has_messages(dialect: Dialect, line: Line) -> bool:
    """Whether there are messages that this dialect has a place for."""
    value = line.value
    if line.problem or dialect_of(value) is None:
        return False
    return isinstance(value, list) or any(_holds(value, name) for name in dialect.lists)


def nothing(line: Line, reason: str) -> Iterator[Step]:
    """An entry that is no session."""
    yield refused(line, reason)
    yield EntryRead("error", line.end)


def told(
    conversation: Conversation, messages: list[Any], before: int, first: int = 1
) -> Iterator[Step]:
    """The steps of all messages; how far they are is reckoned by their number."""
    size = conversation.line.end - before
    for index, message in enumerate(messages):
        offset = before + size * (index + 1) // len(messages)
        yield from conversation.read(first + index, message, offset)


def _session(
    dialect: Dialect, line: Line, keys: Keys, before: int, *, is_on_a_line: bool
) -> Iterator[Step]:
    value = line.value
    body: Item = value if isinstance(value, dict) else {}
    held = [(name, _listed(body[name])) for name in dialect.lists if _holds(body, name)]
    messages: list[Any] = [one for _, some in held for one in some] if body else list(value)
    yield Begin(keys.of(messages, line))
    conversation = Conversation(dialect, dialect.name, line, is_on_a_line)
    if body:
        yield from body_steps(conversation, body, held)
        yield EntryRead("imported", before)
    yield from told(conversation, messages, before)
    if body:
        yield from _call(body, line)


def _holds(body: Item, name: str) -> bool:
    return isinstance(body.get(name), list) or (name == "input" and isinstance(body.get(name), str))


def _listed(messages: Any) -> list[Any]:
    is_words = isinstance(messages, str)
    return [{"role": "user", "content": messages}] if is_words else messages


def asked_by(asking: Asking, body: Item) -> Asked:
    """What a body asks for beside its messages."""
    tools: Any = body
    for name in asking.tools:
        tools = tools.get(name) if isinstance(tools, dict) else None
    settings = {name: value for name, value in body.items() if name in asking.settings}
    return Asked(
        "asked",
        system_prompt=_words(body.get(asking.system)) if asking.system else None,
        tools=tools if isinstance(tools, list) else None,
        settings=settings or None,
    )


def body_steps(
    conversation: Conversation, body: Item, held: list[tuple[str, list[Any]]]
) -> Iterator[Step]:
    """What a body says beside its messages: as it was asked, and as it stands."""
    line = conversation.line
    rest = {name: value for name, value in body.items() if name not in dict(held)}
    counts: list[list[Any]] = [[name, _count(body[name], some)] for name, some in held]
    counts[-1][1] = "text" if counts[-1][1] == "text" else None  # it may grow
    raw = line.json({"body": rest, "held": counts})
    key = f"{BODY}:{digest_of(raw)}"
    asked = asked_by(conversation.dialect.asking, body)
    conversation.system = asked.system_prompt is not None
    yield replace(asked, key=f"{key}:asked")
    yield Aside(key, BODY, raw, line=0)


def _count(messages: Any, some: list[Any]) -> int | str:
    return "text" if isinstance(messages, str) else len(some)


def _words(prompt: Any) -> str | None:
    """A system prompt: a text, or a list of them."""
    if not isinstance(prompt, list):
        return prompt if isinstance(prompt, str) else None
    said = [item["text"] for item in prompt if _is_text(item)]
    return "\n".join(said) if said else None


def _is_text(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("text"), str)


def _is_system(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") in ("system", "developer")


def _call(body: Item, line: Line) -> Iterator[Step]:
    """The call whose answer a body is, where it says what that cost."""
    try:
        usage = _usage(body)
        if usage is None:
            return
        fields = {
            "call_id": take_optional(body, "id", str) or "answer",
            "model": take_optional(body, "model", str),
            "usage": usage,
            "stop_reason": take_optional(body, "status", str),
        }
    except MalformedError as error:
        yield Problem(line.number, str(error))
        return
    yield Call(f"call:{digest_of(line.json(fields['call_id']))}", fields)


def _usage(body: Item) -> Usage | None:
    usage = take_optional(body, "usage", dict)
    if usage is None or not isinstance(body.get("output"), list):
        return None
    sent = take_optional(usage, "input_tokens", int)
    asked = take_optional(usage, "input_tokens_details", dict) or {}
    said = take_optional(usage, "output_tokens_details", dict) or {}
    cached = take_optional(asked, "cached_tokens", int)
    return Usage(
        input=None if sent is None else max(0, sent - (cached or 0)),
        cache_read=cached,
        output=take_optional(usage, "output_tokens", int),
        reasoning=take_optional(said, "reasoning_tokens", int),
    )
