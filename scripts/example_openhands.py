"""An agent of OpenHands whose history is compacted while it works. Needs Python 3.12.

    python scripts/example_openhands.py DATABASE [--turns 3] [--limit TOKENS]

Its model is OpenAI's (OPENAI_API_KEY; OPENAI_BASE_URL where it listens elsewhere). A second start
goes on in the same conversation, which OpenHands keeps in the folder DATABASE.conversation.
"""

import argparse
import os
from collections.abc import Sequence
from typing import Any, Self
from uuid import NAMESPACE_URL, uuid5

from openhands.sdk import LLM, Agent, Conversation, Tool, register_tool
from openhands.sdk.tool import Action, Observation, ToolDefinition, ToolExecutor

from cutbank.frameworks.openhands import CutbankCondenser

FILE = "line after line of a long file\n" * 200


class ReadAction(Action):
    path: str


class ReadObservation(Observation):
    pass


class ReadExecutor(ToolExecutor[ReadAction, ReadObservation]):
    def __call__(self, action: ReadAction, conversation: Any = None) -> ReadObservation:
        del conversation
        return ReadObservation.from_text(f"{action.path}:\n{FILE}")


class ReadTool(ToolDefinition[ReadAction, ReadObservation]):
    @classmethod
    def create(cls, conv_state: Any = None, **params: Any) -> Sequence[Self]:
        del conv_state, params
        return [
            cls(
                description="Read a file of the project.",
                action_type=ReadAction,
                observation_type=ReadObservation,
                executor=ReadExecutor(),
            )
        ]


def talk(database: str, turns: int, limit: int) -> None:
    register_tool("read", ReadTool)
    condenser = CutbankCondenser(session="example", database=database, limit=limit)
    llm = LLM(model="openai/gpt-5-mini", base_url=os.environ.get("OPENAI_BASE_URL"))
    conversation = Conversation(
        Agent(llm=llm, tools=[Tool(name="read")], condenser=condenser),
        persistence_dir=f"{database}.conversation",
        conversation_id=uuid5(NAMESPACE_URL, "example"),
        callbacks=[condenser.keep_event],
        visualizer=None,
    )
    for turn in range(turns):
        conversation.send_message(f"What does file {turn} need?")
        conversation.run()
        print(conversation.state.view.events[-1].to_llm_message().content[0].text)
    conversation.close()
    condenser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="an agent of OpenHands over cutbank")
    parser.add_argument("database")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--limit", type=int, default=200_000, help="tokens that the model holds")
    asked = parser.parse_args()
    talk(asked.database, asked.turns, asked.limit)


if __name__ == "__main__":
    main()
