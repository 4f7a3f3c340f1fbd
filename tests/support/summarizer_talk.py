"""What tests of summarizers have in common: something to sum up, and a model that is scripted."""

from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelRequest, SystemPromptPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from cutbank import Block, Material, Ranges, ToolCall, ToolResult, WindowItem
from cutbank.domain.blocks import AnyBlock
from cutbank.domain.compaction_events import Digest
from cutbank.domain.digest import build_digest
from cutbank.domain.token_estimate import estimate_block


def items_of(*blocks: AnyBlock, begins: int = 1) -> tuple[WindowItem, ...]:
    """Blocks at consecutive positions; a result is tied to the call of its id."""
    calls = {
        block.tool_call_id: begins + index
        for index, block in enumerate(blocks)
        if isinstance(block, ToolCall)
    }
    return tuple(
        WindowItem(
            position=begins + index,
            block=block,
            turn=1,
            tokens=estimate_block(block),
            call=calls.get(block.tool_call_id) if isinstance(block, ToolResult) else None,
        )
        for index, block in enumerate(blocks)
    )


def material_of(items: Iterable[WindowItem], **more: Any) -> Material:
    """All of these leave; what the text may take is ample unless it is said."""
    items = tuple(items)
    material = Material(
        removed_items=items,
        covers=Ranges.of(item.position for item in items),
        budget=2_000,
        digest=build_digest(items, Digest()),
    )
    return replace(material, **more)


def steps(count: int, characters: int = 400) -> list[AnyBlock]:
    """A user's wish, and so many calls with their results."""
    blocks: list[AnyBlock] = [Block.user("Make the tests of the parser green.")]
    for number in range(count):
        name = f"step-{number:03}"
        blocks.append(Block.assistant(f"Now {name}.", message_id=f"m{number}"))
        blocks.append(
            ToolCall(
                tool_call_id=name, name="bash", arguments={"command": name}, message_id=f"m{number}"
            )
        )
        blocks.append(ToolResult(tool_call_id=name, content=f"{name} " * (characters // 9)))
    return blocks


@dataclass
class Scripted:
    """A model that answers each prompt by a function, and remembers what it was asked."""

    answers: Callable[[str], str]
    prompts: list[str] = field(default_factory=list)
    systems: list[str] = field(default_factory=list)
    settings: list[dict[str, Any]] = field(default_factory=list)
    infos: list[AgentInfo] = field(default_factory=list)

    @property
    def model(self) -> FunctionModel:
        return FunctionModel(stream_function=self._stream, model_name="scripted")

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        (request,) = messages
        assert isinstance(request, ModelRequest)
        system, user = request.parts
        assert isinstance(system, SystemPromptPart)
        assert isinstance(user, UserPromptPart)
        assert isinstance(user.content, str)
        self.systems.append(system.content)
        self.prompts.append(user.content)
        self.settings.append(dict(info.model_settings or {}))
        self.infos.append(info)
        async for piece in self.said(user.content):
            yield piece

    async def said(self, prompt: str) -> AsyncIterator[str]:
        yield self.answers(prompt)


def always(text: str) -> Scripted:
    return Scripted(lambda _: text)
