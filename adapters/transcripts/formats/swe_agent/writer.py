"""Writes a session as a trajectory of SWE-agent."""

import json
from collections.abc import Iterator
from typing import Any

from .....domain.blocks import Block, Kind, ToolCall, ToolResult
from .....domain.messages import Role
from .....projections.rendering import summary_message
from ..content.filling import filled
from ..outgoing import Compacted, Entry, Message, Outgoing
from ..reading.fields import Item
from ..summary_mark import MARK
from ..writing.chat_content import answered, thoughts, written
from ..writing.own_entries import Restorer, name_of, own_entries
from .history import DEMONSTRATION, DEVELOPER, NAME, PERSON
from .reader import AROUND
from .trajectory import STEP


def write(outgoing: Outgoing) -> Iterator[bytes]:
    """The trajectory as one document."""
    run = _Run(outgoing)
    run.fill()
    around = run.around or {"info": {"exit_status": None, "submission": None, "model_stats": {}}}
    whole = {**around, "trajectory": run.steps, "history": run.history}
    yield json.dumps(whole, ensure_ascii=False, indent=2).encode(errors="replace") + b"\n"


class _Run:
    """What was written of a session so far."""

    def __init__(self, outgoing: Outgoing) -> None:
        self.outgoing = outgoing
        self.restorer = Restorer()
        self.around: Item = {}
        self.kept: dict[int, Item] = {}
        """Steps that the source told, by their number; the last that was told of each counts."""
        self.history: list[Any] = []
        self.made: list[Item] = []
        """Steps for what was said since."""
        self.prompted = False

    @property
    def steps(self) -> list[Item]:
        return [*(self.kept[number] for number in sorted(self.kept)), *self.made]

    def fill(self) -> None:
        for part in own_entries(self.outgoing, NAME, with_refused=True):
            match part:
                case Entry():
                    self._own(part)
                case Compacted(summary=None):
                    self._prompt()
                    self.outgoing.lose("compactions without a summary")
                case Compacted(summary=summary):
                    self._prompt()
                    assert summary, "the other case"
                    text = summary_message.wrapped(summary.text, summary.covers)
                    self.history.append(
                        _message("user", text, "observation", tags=[DEVELOPER], **MARK)
                    )
                case Message():
                    self._prompt()
                    self._message(part)
        self._prompt()

    def _own(self, entry: Entry) -> None:
        origin = entry.said[0].block.origin
        number = (origin and origin.line) or 0
        if entry.rest is not None and origin and (origin.id or "").startswith("step:"):
            blocks = [said.block for said in entry.said]
            self.kept[number] = filled(entry.rest, blocks, self.restorer.earlier)
            return
        if entry.rest is None and name_of(entry) == AROUND:
            self.around = json.loads(entry.raw or "{}")
            return
        if entry.rest is None and name_of(entry) == STEP:
            told = json.loads(entry.raw or "{}")
            self.kept[number] = filled(told, (), self.restorer.earlier)
            return
        message = self.restorer.restore(entry)
        if message is not None:
            role = message.get("role") if isinstance(message, dict) else None
            self.prompted |= role == "system"
            self.history.append(message)

    def _prompt(self) -> None:
        prompt = self.outgoing.system_prompt
        if not self.prompted and prompt is not None:
            self.history.append(_message("system", prompt, "system_prompt"))
        self.prompted = True

    def _message(self, message: Message) -> None:
        if message.role is Role.ASSISTANT:
            self._assistant(message)
        elif message.role is Role.TOOL_RESULT:
            self._answers(message)
        else:
            blocks = message.blocks
            tag = PERSON if message.role is Role.USER else DEVELOPER
            said = _message("user", written(blocks, self.outgoing), "observation", tags=[tag])
            named = blocks[0].name if isinstance(blocks[0], Block) else None
            self.history.append(said | ({"is_demo": True} if named == DEMONSTRATION else {}))

    def _assistant(self, message: Message) -> None:
        blocks = message.blocks
        content = written(blocks, self.outgoing)
        text = "\n\n".join(block.text for block in blocks if block.kind is Kind.ASSISTANT)
        calls = [block for block in blocks if isinstance(block, ToolCall)]
        action = "\n".join(_command(call) for call in calls)
        said = _message("assistant", content, "action", thought=text, action=action)
        if calls:
            said["tool_calls"] = [
                {
                    "id": call.tool_call_id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in calls
            ]
        self.history.append(said | thoughts(blocks, self.outgoing))
        self.made.append(
            {
                "action": action,
                "observation": "",
                "response": text,
                "thought": text,
                "state": {},
                "execution_time": 0.0,
                "query": [],
                "extra_info": {},
            }
        )

    def _answers(self, message: Message) -> None:
        for block in message.blocks:
            assert isinstance(block, ToolResult), "a message of a tool"
            if block.is_error:
                self.outgoing.lose("marks of failed tool results")
            content = answered(block, self.outgoing)
            ids = [block.tool_call_id]
            self.history.append(_message("tool", content, "observation", tool_call_ids=ids))
            if self.made:
                before = self.made[-1]["observation"]
                self.made[-1]["observation"] = f"{before}\n{block.text}" if before else block.text


def _message(role: str, content: str | list[Item], kind: str, **more: Any) -> Item:
    return {"role": role, "content": content, "agent": "main", "message_type": kind} | more


def _command(call: ToolCall) -> str:
    """The call as the line of a shell, for people who look at the steps."""
    command = call.parsed().get("command")
    return command if isinstance(command, str) else f"{call.name} {call.arguments}"
