"""Sessions that are summarized over and over by rules alone."""

import json
from dataclasses import dataclass, field, replace

from cutbank.domain.blocks import AnyBlock, Block, BlockKind, ToolCall, ToolResult
from cutbank.domain.compaction_events import Digest
from cutbank.domain.digest import build_digest
from cutbank.domain.item import WindowItem
from cutbank.domain.ranges import Ranges
from cutbank.domain.summaries.extractive import ExtractiveSummarizer
from cutbank.domain.summaries.gate import check_draft
from cutbank.domain.summaries.summarizer import Draft, Material
from cutbank.domain.token_estimate import estimate_block


@dataclass
class Talk:
    """A session as it is summarised over and over: what left, and what was said of it so far."""

    head: int = 0
    turn: int = 0
    items: list[WindowItem] = field(default_factory=list)
    gone: list[WindowItem] = field(default_factory=list)
    draft: Draft | None = None
    digest: Digest = field(default_factory=Digest)

    def say(self, *blocks: AnyBlock | str, tokens: int | None = None) -> "Talk":
        for said in blocks:
            block = Block.user(said) if isinstance(said, str) else said
            self.head += 1
            self.turn += block.kind is BlockKind.USER
            size = estimate_block(block) if tokens is None else tokens
            self.items.append(WindowItem(self.head, block, self.turn, size))
        return self

    def call(
        self, name: str, result: str = "ok", *, failed: bool = False, **arguments: object
    ) -> "Talk":
        name_of_call = f"call-{self.head}"
        return self.say(
            ToolCall(tool_call_id=name_of_call, name=name, arguments=json.dumps(arguments)),
            ToolResult(tool_call_id=name_of_call, content=result, is_error=failed),
        )

    def material(self, budget: int = 2_000, **more: object) -> Material:
        gone = tuple(self.items)
        material = Material(
            removed_items=gone,
            covers=Ranges.span(1, self.head),
            budget=budget,
            previous=self.draft.text if self.draft else None,
            previous_sections=self.draft.sections if self.draft else {},
            digest=build_digest(gone, self.digest),
        )
        return replace(material, **more)  # type: ignore[arg-type]

    def summary(self, budget: int = 2_000, **more: object) -> Draft:
        material = self.material(budget, **more)
        draft = ExtractiveSummarizer().summarize(material)
        texts = user_texts([*self.gone, *self.items])
        check_draft(draft, material, user_texts=texts)
        self.gone += self.items
        self.items, self.draft, self.digest = [], draft, material.digest
        return draft


def user_texts(items: list[WindowItem]) -> list[str]:
    return [item.block.text for item in items if item.kind is BlockKind.USER]


def filler(words: int = 4_000) -> Block:
    """Something large and dull, so that there is room for a summary of the rest."""
    return Block.assistant("la " * words)
