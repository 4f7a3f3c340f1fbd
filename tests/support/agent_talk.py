"""A long talk with an agent, refusals for its length, and summarizers that answer as scripted."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from cutbank import Block, StoredSession, ToolCall, ToolResult
from cutbank.domain.summaries.summarizer import Draft, Material, SummaryPart, SummaryRequest

TOO_LONG = {
    "type": "error",
    "error": {
        "type": "invalid_request_error",
        "message": "prompt is too long: 9100 tokens > 8000 maximum",
    },
}


@dataclass(frozen=True)
class Scripted:
    """A summarizer that answers with what a function returns."""

    says: Callable[[Material], Draft | Awaitable[Draft]]
    name: str = "scripted"

    def summarize(self, material: Material) -> Draft | Awaitable[Draft]:
        return self.says(material)


@dataclass
class FormWriter:
    """A summarizer that answers each request of the plan's template, and keeps the requests."""

    says: Callable[[SummaryPart], str] = lambda part: f"Summary of the {part}."
    requests: list[SummaryRequest] = field(default_factory=list)
    name: str = "by-form"

    def summarize(self, material: Material) -> Draft:
        assert material.template is not None
        requests = material.template.plan_requests(material)
        self.requests += requests
        texts = {one.part: self.says(one.part) for one in requests}
        return Draft(material.template.join_answers(texts, material))


def talk(session: StoredSession, turns: int, *, size: int = 400, calls: int = 0) -> StoredSession:
    """Append turns of a user, so many calls with results, and an agent, `size` characters each."""
    for turn in range(turns):
        session.append(Block.user(f"question {turn} " + "q" * size))
        for _ in range(calls):
            id = f"c{session.position}"
            session.append(
                ToolCall(
                    tool_call_id=id,
                    name="read_file",
                    arguments={"path": f"{turn}.py"},
                    message_id=f"m{id}",
                )
            )
            session.append(ToolResult(tool_call_id=id, content="r" * size))
        session.append(Block.assistant(f"answer {turn} " + "a" * size))
    return session


def full(session: StoredSession) -> StoredSession:
    """Fill a session past a limit of 8,000 tokens; its user waits for an answer."""
    talk(session, 40)
    session.append(Block.user("and now?"))
    return session
