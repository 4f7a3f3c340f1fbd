"""Reads the messages of one session, one after the other, in the dialect of their provider."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from .....domain.blocks import BY_ASSISTANT, AnyBlock, Block, Kind, Origin, ToolResult
from .....domain.compaction_events import Trigger
from .....projections.rendering import exchanges, tool_calls
from ..content.holes import rest_of
from ..json_lines import Line, NestedTooDeeplyError
from ..reading.entry_steps import digest_of
from ..reading.fields import Item, MalformedError, json_name
from ..steps import Append, Aside, Asked, Call, Compacted, EntryRead, Problem, Step, Unknown
from ..summary_mark import summary_of
from .pieces import Compaction, Made, Piece, Unheard, Wrong

FROM_A_CALL = "[from the tool call "
"""How the words begin that stand before media which a tool's message could not hold."""
WHAT_IT_KEPT = "what it kept is not told"


@dataclass(frozen=True, slots=True)
class Asking:
    """What a request holds beside the messages."""

    system: str | None
    """The field of the system prompt; None where it is a message."""
    settings: frozenset[str]
    tools: tuple[str, ...] = ("tools",)
    """The way to the tools' definitions."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one provider writes messages down."""

    name: str
    """The format's name, and the renderer's, and the provider's."""
    lists: tuple[str, ...]
    """The fields of a body that hold messages."""
    pieces: Callable[[Item, Line, int], Iterator[Piece]]
    asking: Asking
    is_of_items: bool = False
    """Whether each piece of a model's answer is an item of its own."""
    call: Callable[[str], dict[str, Any] | None] | None = None
    """What a message, as JSON text, says of the call that it answered; None if nothing."""


@dataclass
class Conversation:
    """What is known of a session at one of its messages."""

    dialect: Dialect
    format: str
    line: Line
    """Where the messages stand: a document, or a line of its own."""
    is_on_a_line: bool
    system: bool = False
    """Whether the system prompt is known: it is told first, and by one message."""
    said: bool = False
    """Whether there is a block."""
    answer: str | None = None
    """The model's answer that goes on, where each piece is an item."""
    steps: list[Step] = field(default_factory=list)

    def read(self, number: int, message: Any, offset: int) -> list[Step]:
        """The steps of a message."""
        self.steps = []
        try:
            outcome = self._read(number, message)
        except NestedTooDeeplyError as error:
            outcome = self._wrong(number, str(error), "", None)
        self.steps.append(EntryRead(outcome, offset))
        return self.steps

    def _read(self, number: int, message: Any) -> str:
        raw = self.line.json(message)
        key = f"{number}:{digest_of(raw)}"
        if not isinstance(message, dict):
            return self._wrong(number, f"expected an object, got {json_name(message)}", key, raw)
        try:
            pieces = list(self.dialect.pieces(message, self.line, number))
        except MalformedError as error:
            return self._wrong(number, str(error), key, raw)
        if number == 1 and not self.system and (prompt := system_prompt(message, pieces)):
            self.system = True
            self.steps += [
                Asked(f"{key}:asked", system_prompt=prompt),
                self._aside(key, raw, number),
            ]
            return "imported"
        made = list(self._made(pieces, key, message))
        self._append(message, number, key, made, raw)
        outcome = self._left(number, key, raw, pieces, is_empty=not made)
        if not made and outcome == "imported":
            self.steps.append(self._aside(key, raw, number))
        return outcome

    def _made(self, pieces: list[Piece], key: str, message: Item) -> Iterator[Made]:
        """The blocks; compactions come before all that their message says beside them."""
        made: list[Made] = []
        for index, piece in enumerate(pieces):
            match piece:
                case Compaction(summary=summary, partial=partial):
                    if before := self._compacted(f"{key}:{index}", summary, partial):
                        made.append(before)
                case Made(block=Block(kind=Kind.USER, text=text)) if text == exchanges.OPENING:
                    pass
                case Made(block=Block(kind=Kind.USER, text=text)) if told := (
                    summary_of(message, text)
                ):
                    if before := self._compacted(f"{key}:{index}", told.text, WHAT_IT_KEPT):
                        made.append(before)
                case Made(block=Block(kind=Kind.USER, text=text) as block, holes=holes) if (
                    text.startswith(FROM_A_CALL) and text.endswith("]")
                ):
                    words = block.model_copy(update={"kind": Kind.DEVELOPER})
                    made.append(Made(words, holes))
                case Made(block=ToolResult() as block) if _is_no_answer(block.text):
                    pass
                case Made(block=ToolResult() as block) if block.text == tool_calls.NO_OUTPUT:
                    made.append(Made(block.model_copy(update={"content": ""}), ()))
                case Made(block=block) if _says_something(block):
                    made.append(piece)
                case _:
                    pass
        yield from made

    def _compacted(self, key: str, summary: str | None, partial: str | None) -> Made | None:
        if self.said:
            self.steps.append(
                Compacted(f"{key}:compacted", Trigger.THRESHOLD, summary, partial=partial)
            )
            return None
        return Made(Block.developer(summary, name="summary"), ()) if summary else None

    def _append(self, message: Item, number: int, key: str, made: list[Made], raw: str) -> None:
        rest: str | None = None
        if made:
            holes = [
                replace(hole, block=index) for index, one in enumerate(made) for hole in one.holes
            ]
            rest = self.line.json(rest_of(message, holes))
        shared = self._message_id(number, [one.block for one in made])
        if made and self.dialect.call and (call := self.dialect.call(raw)):
            self.steps.append(Call(f"{key}:call", call, before=key))
        for index, one in enumerate(made):
            origin = Origin(format=self.format, entry=None if index else rest, line=number)
            is_result = isinstance(one.block, ToolResult)
            said = {"origin": origin, "message_id": None if is_result else shared}
            block = one.block.model_copy(update=said)
            self.steps.append(Append(f"{key}:{index}", block, key))
            self.said = True

    def _message_id(self, number: int, blocks: list[AnyBlock]) -> str | None:
        results = [block for block in blocks if isinstance(block, ToolResult)]
        if not blocks or (results and blocks[0].kind not in BY_ASSISTANT):
            self.answer = None
            return None
        if not self.dialect.is_of_items:
            return f"message-{number}"
        if blocks[0].kind not in BY_ASSISTANT:
            self.answer = None
            return f"message-{number}" if len(blocks) > 1 else None
        self.answer = self.answer or f"answer-{number}"
        return self.answer

    def _left(self, number: int, key: str, raw: str, pieces: list[Piece], *, is_empty: bool) -> str:
        """Report what could not be read; what is left of the message holds it, where there are
        blocks, and else the whole of it is kept."""
        outcome = "imported"
        for index, piece in enumerate(pieces):
            whole = is_empty and outcome == "imported"
            if isinstance(piece, Wrong):
                if whole:
                    outcome = self._wrong(number, piece.reason, key, raw)
                else:
                    name, text = f"{key}:{index}:refused", self.line.json(piece.item)
                    outcome = self._wrong(number, piece.reason, name, text, is_part=True)
            elif isinstance(piece, Unheard):
                text = raw if whole else self.line.json(piece.item)
                if whole or not is_empty:
                    name = key if whole else f"{key}:{index}:unknown"
                    self.steps.append(Unknown(name, piece.type, text, line=number))
                outcome = "unknown" if outcome == "imported" else outcome
        return outcome

    def _wrong(
        self, number: int, reason: str, key: str, raw: str | None, *, is_part: bool = False
    ) -> str:
        where = (self.line.number, f"message {number}: {reason}")
        where = where if self.is_on_a_line else (number, reason)
        self.steps.append(Problem(*where, key if raw else None, raw, is_part=is_part))
        return "error"

    def _aside(self, key: str, raw: str, number: int) -> Aside:
        return Aside(key, "message", raw, line=number)


def system_prompt(message: Item, pieces: list[Piece]) -> str | None:
    """What a first message sets as the system prompt, if it does nothing else."""
    said = [one.block.text for one in pieces if isinstance(one, Made)]
    role = message.get("role", message.get("source"))
    if message.get("extra") == {"role": "developer"}:
        return None  # as cutbank writes a harness's words where a form has no such role
    is_prompt = role == "system" and len(said) == len(pieces)
    return "\n".join(said) or None if is_prompt else None


def _is_no_answer(text: str) -> bool:
    """Whether it stands for a result that never came, as a view says it."""
    was_abandoned = text.startswith("[abandoned: ") and text.endswith("]")
    return was_abandoned or text == tool_calls.NO_RESULT


def _says_something(block: AnyBlock) -> bool:
    return bool(block.text or block.native or not isinstance(block, Block) or block.media)
