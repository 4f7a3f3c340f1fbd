"""A complete agent over cutbank, which may be killed at any moment and goes on where it was.

    python scripts/example_agent.py DATABASE --turns 200 [--limit TOKENS]

It asks a model of Anthropic's (ANTHROPIC_API_KEY; ANTHROPIC_BASE_URL where it listens elsewhere) to
look after one file each turn. What comes next is read from the log alone, so a start and a restart
are the same code.
"""

import argparse

import anthropic
from anthropic.types import Message
from pydantic import JsonValue

import cutbank
from cutbank import (
    AppendResult,
    Block,
    BlockKind,
    HistoryView,
    LlmSummarizer,
    LoopOptions,
    ReserveHeadroom,
    StoredSession,
    ToolCall,
    ToolResult,
)

MODEL = "claude-sonnet-4-6"
CHEAPER_MODEL = "anthropic:claude-haiku-4-5"
SYSTEM = "You look after a project: read the file that you are asked about, then say what it needs."
GOAL = "Keep every file of the project in order, one after the other. Never touch `migrations`."
TOOLS: list[JsonValue] = [
    {
        "name": "read",
        "description": "Read a file of the project.",
        "input_schema": {
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
        },
    }
]


def main() -> None:
    parser = argparse.ArgumentParser(description="an agent over cutbank")
    parser.add_argument("database")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--limit", type=int, default=200_000, help="tokens that the model holds")
    asked = parser.parse_args()
    with cutbank.open(asked.database) as store:
        Agent(store.session("example"), asked.limit).run(asked.turns)


class Agent:
    """Reads from the log what is next, and does it."""

    def __init__(self, session: StoredSession, limit: int) -> None:
        self.session = session
        self.client = anthropic.Anthropic(max_retries=2)
        self.loop = session.loop(
            ReserveHeadroom(reserve_tokens=limit // 20, keep_tokens=limit // 4),
            limit=limit,
            model=MODEL,
            options=LoopOptions(
                summarizers=[
                    LlmSummarizer(CHEAPER_MODEL, base_url=str(self.client.base_url).rstrip("/"))
                ]
            ),
        )
        session.configure(
            system_prompt=SYSTEM,
            tools=TOOLS,
            request_settings={"model": MODEL, "max_tokens": 1_000},
        )

    def run(self, turns: int) -> None:
        """Go on until so many turns are done."""
        while True:
            state = self.session.info.state
            if state.open_calls:
                self.answer_calls()
            elif self.is_asked():
                self.ask_model()
            elif state.turn < turns:
                self.report(self.session.append(Block.user(prompt(state.turn + 1))))
            else:
                return

    def is_asked(self) -> bool:
        """Whether the newest words are a user's or a tool's."""
        entries = self.session.view().entries
        return bool(entries) and entries[-1].block.kind in {BlockKind.USER, BlockKind.TOOL_RESULT}

    def ask_model(self) -> None:
        """One request: what is sent fits, or is made to fit; what comes back is in the log."""
        view = self.loop.prepare()
        try:
            message = self.send(view)
        except anthropic.BadRequestError as error:
            view = self.loop.handle_overflow(error)  # raises what is no overflow again
            message = self.send(view)
        self.report(self.session.append_response(message, view=view))

    def send(self, view: HistoryView) -> Message:
        return self.client.messages.create(**view.render("anthropic"))

    def answer_calls(self) -> None:
        """Run the tools whose results are missing, be it that their process was killed."""
        for name, position in self.session.info.state.open_calls.items():
            (call,) = self.session.recall(position)
            assert isinstance(call.block, ToolCall)
            result = ToolResult(tool_call_id=name, content=read(call.block))
            self.report(self.session.append(result))

    def report(self, stored: AppendResult) -> None:
        """Print what is stored by now."""
        for recalled in self.session.recall(*range(stored.first, stored.last + 1)):
            print(f"#{recalled.position} {recalled.block.kind}", flush=True)


def prompt(turn: int) -> str:
    """What the user says in a turn."""
    return GOAL if turn == 1 else f"Now look at file_{turn}.py."


def read(call: ToolCall) -> str:
    """The tool: what a file holds."""
    path = call.parse_arguments().get("path")
    return "\n".join(f"{number:3}: # what {path} says here" for number in range(1, 41))


if __name__ == "__main__":
    main()
