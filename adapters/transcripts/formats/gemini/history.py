"""Histories of the Gemini API: an array of contents, bare or in a checkpoint of Gemini CLI."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .....domain.blocks import AnyBlock, Block, Kind, Origin, ToolCall, ToolResult
from .....domain.compaction_events import Trigger
from ..content.holes import At, Hole, rest_of
from ..format import Format
from ..json_lines import Line, NestedTooDeeplyError
from ..reading.entry_steps import EntrySteps, digest_of, entry_steps
from ..reading.fields import Item, MalformedError, take, take_optional
from ..source import Source
from ..steps import Append, Aside, Begin, Compacted, EntryRead, Problem, Step
from ..summary_mark import summary_of
from .history_writer import CHECKPOINT, NAME, write
from .parts import answer_of, content_of, is_snapshot, kind_of_user_text, media_holes, media_of

PROVIDER = "gemini"
_ROLES = ("user", "model", "function")
_NATIVE = ("executableCode", "codeExecutionResult")


def recognises(source: Source) -> bool:
    """Whether this is a history of Gemini API contents."""
    document = source.document
    match document.value if document else None:
        case [{"role": _, "parts": list()}, *_] as contents:
            return any(_is_content(content) for content in contents)
        case {"history": [{"role": _, "parts": list()}, *_] as contents}:
            return any(_is_content(content) for content in contents)
        case _:
            return False


def read(source: Source) -> Iterator[Step]:
    """The steps of a history."""
    line = source.document
    if line is None or line.problem:
        yield Problem(1, (line and line.problem) or "not one JSON array")
        yield EntryRead("error", line.end if line else source.size)
        return
    yield Begin(_key_of(line))
    yield from History(line).steps()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a part stands in its content, and which of the content's blocks it is."""

    holes: list[Hole]
    index: int
    block: int
    name: str


class History:
    """A history while it is read. Calls are paired by their ids, or else by their names."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.open: dict[str, list[str]] = {}
        """Calls without a response: the ids that the session knows them by, oldest first."""
        self.taken: set[str] = set()
        self.has_said = False

    def steps(self) -> Iterator[Step]:
        contents = self.line.value
        if isinstance(contents, dict):
            yield from entry_steps(self.line, 0, self._around, contents)
            contents = contents.get("history")
        for number, content in enumerate(contents if isinstance(contents, list) else [], 1):
            yield from entry_steps(self.line, number, self._content, content)

    def _around(self, entry: EntrySteps, checkpoint: Item) -> None:
        """What stands in a checkpoint around the history."""
        rest = {name: value for name, value in checkpoint.items() if name != "history"}
        raw = self.line.json(rest)
        entry.say(Aside(f"{CHECKPOINT}:{digest_of(raw)}", CHECKPOINT, raw, line=0))
        take(checkpoint, "history", list)

    def _content(self, entry: EntrySteps, content: Any) -> None:
        if not isinstance(content, dict):
            raise MalformedError("expected an object")
        role = take(content, "role", str)
        if role not in _ROLES:
            raise MalformedError(f"role: {role!r} is not known")
        parts = take(content, "parts", list)
        id = f"{entry.number}:{digest_of(self.line.json(content))}"
        holes, made = list[Hole](), list[AnyBlock]()
        for index, part in enumerate(parts):
            place = Place(holes, index, len(made), f"{entry.number}-{index}")
            try:
                block = self._block(entry, part, role, place)
            except MalformedError as error:
                raw = self.line.json(part)
                entry.problem(f"parts[{index}]: {error}", raw)
                continue
            if block is not None:
                made.append(block)
        if not made:
            raw = self.line.json(content)
            entry.say(Aside(id, f"content/{role}", raw, id, entry.number))
            return
        rest = self.line.json(rest_of(content, holes))
        if len(made) == 1 and (found := self._compacted(content, id)):
            whole = self.line.json(content)
            entry.say(Aside(id, f"content/{role}", whole, id, entry.number), found)
            return
        self.has_said = True
        for index, block in enumerate(made):
            origin = Origin(format=NAME, id=id, line=entry.number, entry=None if index else rest)
            shared = {"origin": origin, "message_id": id if role == "model" else None}
            entry.say(Append(f"{id}:{index}", block.model_copy(update=shared), id))

    def _compacted(self, content: Item, id: str) -> Compacted | None:
        """A summary that cutbank exported, where something stands before it."""
        match content:
            case {"role": "user", "parts": [{"text": str(text)}]} if self.has_said:
                found = summary_of(content, text)
                return Compacted(f"{id}:compacted", Trigger.MANUAL, found.text) if found else None
            case _:
                return None

    def _block(self, entry: EntrySteps, part: Any, role: str, place: Place) -> AnyBlock | None:
        if not isinstance(part, dict):
            raise MalformedError("expected an object")
        at: At = ("parts", place.index)
        match part:
            case {"functionCall": call}:
                return self._call(call, place)
            case {"functionResponse": response}:
                return self._response(response, place)
            case {"text": _}:
                return self._text(part, role, place)
            case {"inlineData": _} | {"fileData": _} if role == "user":
                media = media_of(part)
                if media is None:
                    raise MalformedError("expected a mimeType and data, or a fileUri")
                place.holes.extend(media_holes(part, media, at, block=place.block))
                return Block(kind=Kind(media.type), media=media)
            case _ if any(name in part for name in _NATIVE):
                place.holes.append(Hole(at, "json", block=place.block))
                return Block.note(self.line.json(part), name="code")
            case {"thoughtSignature": _} if len(part) == 1:
                return None  # it stays in the rest of the content
            case _:
                kind = "part/" + "+".join(sorted(part))
                entry.unknown(kind, self.line.json(part))
                return None

    def _text(self, part: Item, role: str, place: Place) -> Block | None:
        text = take(part, "text", str)
        if not text:
            return None
        if role != "model" and (found := summary_of(part, text)):
            # Its mark stays in the rest of the content.
            return Block.developer(found.text, name="summary")
        place.holes.append(Hole(("parts", place.index, "text"), block=place.block))
        if role == "model":
            return Block.thinking(text) if part.get("thought") is True else Block.assistant(text)
        if is_snapshot(text):
            return Block.developer(text, name="summary")
        return Block(kind=kind_of_user_text(text), text=text)

    def _call(self, call: Any, place: Place) -> ToolCall:
        if not isinstance(call, dict):
            raise MalformedError("functionCall: expected an object")
        name = take(call, "name", str, "functionCall.")
        told = take_optional(call, "id", str, "functionCall.") or None
        arguments = take_optional(call, "args", dict, "functionCall.")
        if arguments is not None:
            at = ("parts", place.index, "functionCall", "args")
            place.holes.append(Hole(at, "json", block=place.block))
        known = told if told and told not in self.taken else f"{told or 'call'}-{place.name}"
        self.taken.add(known)
        self.open.setdefault(told or f"name:{name}", []).append(known)
        return ToolCall(tool_call_id=known, name=name, arguments=self.line.json(arguments or {}))

    def _response(self, response: Any, place: Place) -> ToolResult:
        if not isinstance(response, dict):
            raise MalformedError("functionResponse: expected an object")
        told = take_optional(response, "id", str, "functionResponse.") or None
        name = take(response, "name", str, "functionResponse.")
        at = ("parts", place.index, "functionResponse")
        answer = answer_of(response, at, self.line, block=place.block)
        place.holes.extend(answer.holes)
        waiting = self.open.get(told or f"name:{name}")
        # One that answers no call is refused later, and kept as a note.
        known = waiting.pop(0) if waiting else told or f"response-{place.name}"
        said = content_of(answer.parts)
        return ToolResult(tool_call_id=known, content=said, is_error=answer.is_error)


def _key_of(line: Line) -> str:
    """A history has no id. It is known by how it begins, up to the model's first words.

    So a checkpoint that was saved later, under another name, goes on with the same session.
    """
    value = line.value
    contents = value.get("history") if isinstance(value, dict) else value
    begins: list[Any] = []
    for content in contents if isinstance(contents, list) else []:
        begins.append(content)
        if isinstance(content, dict) and content.get("role") == "model":
            break
    try:
        return f"gemini-{digest_of(line.json(begins))}"
    except NestedTooDeeplyError:
        return f"gemini-{line.digest.removeprefix('line:')}"


def _is_content(content: Any) -> bool:
    match content:
        case {"role": "user" | "model", "parts": [dict(), *_]}:
            return True
        case _:
            return False


FORMAT = Format(
    name=NAME,
    what="histories of the Gemini API",
    recognises=recognises,
    read=read,
    write=write,
    suffix=".json",
)
