"""Writes a session as a trajectory of SWE-agent."""

import json
from collections.abc import Iterator
from typing import Any

from .....domain.blocks import Block, Kind, ToolCall, ToolResult
from .....domain.messages import Role
from .....projections.rendering import summary_message
from ..chat_content import (
    make_answer_content,
    make_call_items,
    make_chat_content,
    make_shell_command,
    make_thought_fields,
)
from ..fields import JsonDict
from ..outgoing import (
    EntryRestorer,
    OutgoingCompaction,
    OutgoingEntry,
    OutgoingMessage,
    OutgoingSession,
    group_own_entries,
    read_entry_type,
)
from ..placeholders import fill_entry
from ..summary_mark import SUMMARY_MARK
from .swe_agent_reader import (
    DEMONSTRATION_ENTRY,
    DEVELOPER_AGENT,
    FORMAT_NAME,
    STEP_ENTRY,
    SWE_AGENT_ENTRY,
    USER_AGENT,
)


def write(outgoing: OutgoingSession) -> Iterator[bytes]:
    run = _TrajectoryBuilder(outgoing)
    run.fill()
    around = run.around or {"info": {"exit_status": None, "submission": None, "model_stats": {}}}
    whole = {**around, "trajectory": run.steps, "history": run.history}
    yield json.dumps(whole, ensure_ascii=False, indent=2).encode(errors="replace") + b"\n"


class _TrajectoryBuilder:
    def __init__(self, outgoing: OutgoingSession) -> None:
        self.outgoing = outgoing
        self.restorer = EntryRestorer()
        self.around: JsonDict = {}
        self.kept: dict[int, JsonDict] = {}
        """Steps of the source, by number; the last version of each."""
        self.history: list[Any] = []
        self.made: list[JsonDict] = []
        self.prompted = False

    @property
    def steps(self) -> list[JsonDict]:
        return [*(self.kept[number] for number in sorted(self.kept)), *self.made]

    def fill(self) -> None:
        for part in group_own_entries(self.outgoing, FORMAT_NAME, with_refused=True):
            match part:
                case OutgoingEntry():
                    self._restore_entry(part)
                case OutgoingCompaction(summary=None):
                    self._add_prompt()
                    self.outgoing.count_loss("compactions without a summary")
                case OutgoingCompaction(summary=summary):
                    self._add_prompt()
                    assert summary, "the other case"
                    text = summary_message.wrap_summary(summary.text, summary.covers)
                    self.history.append(
                        _make_message(
                            "user", text, "observation", tags=[DEVELOPER_AGENT], **SUMMARY_MARK
                        )
                    )
                case OutgoingMessage():
                    self._add_prompt()
                    self._add_message(part)
        self._add_prompt()

    def _restore_entry(self, entry: OutgoingEntry) -> None:
        origin = entry.outgoing_blocks[0].block.origin
        number = (origin and origin.line) or 0
        if entry.remainder is not None and origin and (origin.id or "").startswith("step:"):
            blocks = [said.block for said in entry.outgoing_blocks]
            self.kept[number] = fill_entry(entry.remainder, blocks, self.restorer.earlier)
            return
        if entry.remainder is None and read_entry_type(entry) == SWE_AGENT_ENTRY:
            self.around = json.loads(entry.raw or "{}")
            return
        if entry.remainder is None and read_entry_type(entry) == STEP_ENTRY:
            told = json.loads(entry.raw or "{}")
            self.kept[number] = fill_entry(told, (), self.restorer.earlier)
            return
        message = self.restorer.restore(entry)
        if message is not None:
            role = message.get("role") if isinstance(message, dict) else None
            self.prompted |= role == "system"
            self.history.append(message)

    def _add_prompt(self) -> None:
        prompt = self.outgoing.system_prompt
        if not self.prompted and prompt is not None:
            self.history.append(_make_message("system", prompt, "system_prompt"))
        self.prompted = True

    def _add_message(self, message: OutgoingMessage) -> None:
        if message.role is Role.ASSISTANT:
            self._add_assistant(message)
        elif message.role is Role.TOOL_RESULT:
            self._add_answers(message)
        else:
            blocks = message.blocks
            tag = USER_AGENT if message.role is Role.USER else DEVELOPER_AGENT
            said = _make_message(
                "user", make_chat_content(blocks, self.outgoing), "observation", tags=[tag]
            )
            named = blocks[0].name if isinstance(blocks[0], Block) else None
            self.history.append(said | ({"is_demo": True} if named == DEMONSTRATION_ENTRY else {}))

    def _add_assistant(self, message: OutgoingMessage) -> None:
        blocks = message.blocks
        content = make_chat_content(blocks, self.outgoing)
        text = "\n\n".join(block.text for block in blocks if block.kind is Kind.ASSISTANT)
        calls = [block for block in blocks if isinstance(block, ToolCall)]
        action = "\n".join(make_shell_command(call) for call in calls)
        said = _make_message("assistant", content, "action", thought=text, action=action)
        if calls:
            said["tool_calls"] = make_call_items(calls)
        self.history.append(said | make_thought_fields(blocks, self.outgoing))
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

    def _add_answers(self, message: OutgoingMessage) -> None:
        for block in message.blocks:
            assert isinstance(block, ToolResult), "a message of a tool"
            if block.is_error:
                self.outgoing.count_loss("marks of failed tool results")
            content = make_answer_content(block, self.outgoing)
            ids = [block.tool_call_id]
            self.history.append(_make_message("tool", content, "observation", tool_call_ids=ids))
            if self.made:
                before = self.made[-1]["observation"]
                self.made[-1]["observation"] = f"{before}\n{block.text}" if before else block.text


def _make_message(role: str, content: str | list[JsonDict], kind: str, **more: Any) -> JsonDict:
    return {"role": role, "content": content, "agent": "main", "message_type": kind} | more
