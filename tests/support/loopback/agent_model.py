"""The model of the example agent: reads a file each turn, and sums up when it is asked to."""

import re
from dataclasses import dataclass, field
from typing import Any

from .answers import Answer, Call, Refuses, Request, Says, Script, Stop, Tokens, Why

SUMMARY = (
    "## Goal\n- Every file of the project in order, one after the other\n\n"
    "## Progress\n### Done\n- Files were read, and each was found to be in order ({handles})\n\n"
    "## Next Steps\n- The next file that is asked for"
)


@dataclass
class AgentModel:
    """Holds so many tokens, and refuses what is longer as its provider does."""

    holds: int
    calls: int = 0
    refused: list[Request] = field(default_factory=list)

    def __call__(self, request: Request) -> Answer:
        tokens = len(request.raw) // 4
        if tokens > self.holds:
            self.refused.append(request)
            return Refuses(Why.OVERFLOW, tokens=tokens, limit=self.holds)
        if not is_agents(request):
            return Says(_summary(request), Tokens(tokens, 120))
        self.calls += 1
        if _last(request).get("type") == "tool_result":
            return Says(f"That file is in order ({self.calls}).", Tokens(tokens, 12))
        path = re.findall(r"file_\d+\.py", str(_last(request))) or ["README.md"]
        call = Call("read", {"path": path[-1]}, id=f"toolu_{self.calls:05}")
        return Says("I read it.", Tokens(tokens, 20), Stop.TOOL, (call,))


def is_agents(request: Request) -> bool:
    return bool(request.body.get("tools"))


def until(model: Script, waits: Answer, summary: int) -> Script:
    """That model, whose summary of that number is another answer."""
    asked = 0

    def script(request: Request) -> Answer:
        nonlocal asked
        asked += not is_agents(request)
        return waits if not is_agents(request) and asked == summary else model(request)

    return script


def _last(request: Request) -> dict[str, Any]:
    content = request.body["messages"][-1]["content"]
    return {"type": "text", "text": content} if isinstance(content, str) else dict(content[-1])


def _summary(request: Request) -> str:
    handles = re.findall(r"#(\d+) ", str(request.body["messages"]))
    return SUMMARY.format(handles=", ".join(f"#{handle}" for handle in handles[:3]))
