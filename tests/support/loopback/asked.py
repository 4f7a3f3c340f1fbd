"""A provider behind the loopback, asked by the summarizer `llm` for a conversation's summary."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import certifi
import pytest

from cutbank import Block, Draft, LlmSummarizer, Material, Ranges, ToolCall, ToolResult, WindowItem
from cutbank.domain.blocks import AnyBlock
from cutbank.domain.summaries.gate import check_draft

from .answers import Answer, in_turn
from .providers import DIALECTS, Provider
from .server import Loopback

GOAL = "Make the parser accept comments. Never touch the migrations folder."
_BLOCKS: tuple[AnyBlock, ...] = (
    Block.user(GOAL),
    Block.assistant("I read the parser first.", message_id="m1"),
    ToolCall(tool_call_id="c1", name="read", arguments='{"path": "parser.py"}', message_id="m1"),
    ToolResult(tool_call_id="c1", content="def parse(text):\n    raise SyntaxError\n" * 200),
    Block.assistant("It has no rule for comments; I add one to the grammar."),
)
MATERIAL = Material(
    removed_items=tuple(
        WindowItem(position, block, turn=1, tokens=max(len(block.text) // 4, 8))
        for position, block in enumerate(_BLOCKS, 2)
    ),
    covers=Ranges.span(2, 1 + len(_BLOCKS)),
    budget=1_000,
)
SUMMARY = (
    "## Goal\n- Comments in the parser (#2)\n\n"
    "## Progress\n- The parser was read: it has no rule for comments (#5)\n\n"
    "## Next Steps\n- Add that rule to the grammar (#6)"
)


def judge(draft: Draft, material: Material = MATERIAL) -> None:
    """As the store does before a draft may stand for anything."""
    check_draft(draft, material, user_texts=[GOAL])


@dataclass(frozen=True)
class Asked:
    provider: Provider
    server: Loopback

    def llm(self, **options: Any) -> LlmSummarizer:
        base_url = self.provider.base_url(self.server.url)
        return LlmSummarizer(self.provider.model, base_url=base_url, **options)

    def draft(self, *answers: Answer, material: Material = MATERIAL, **options: Any) -> Draft:
        if answers:
            self.server.script = in_turn(*answers)
        return asyncio.run(self.llm(**options).summarize(material))


FOREIGN = ("GEMINI_API_KEY", "AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK", "AWS_SESSION_TOKEN")
"""What a machine may have set that a client would take for its own."""


def keys_alone(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    for name in FOREIGN:
        monkeypatch.delenv(name, raising=False)
    for each in DIALECTS:
        for name, value in each.variables.items():
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(folder / "none"))
    # Each client reads all certificates of authorities there are, and the loopback has none.
    monkeypatch.setenv("SSL_CERT_FILE", str(_one_certificate(folder)))


def _one_certificate(folder: Path) -> Path:
    end = "-----END CERTIFICATE-----\n"
    first, _, _ = Path(certifi.where()).read_text("ascii", "replace").partition(end)
    path = folder / "certificate.pem"
    path.write_text(first[first.index("-----BEGIN") :] + end)
    return path
