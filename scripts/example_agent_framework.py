"""An agent of Microsoft's Agent Framework whose history is compacted while it works.

    python scripts/example_agent_framework.py DATABASE [--turns 3] [--limit TOKENS]

Its model is OpenAI's (OPENAI_API_KEY; OPENAI_BASE_URL where it listens elsewhere). A second start
goes on in the same session.
"""

import argparse
import asyncio

from agent_framework import Agent, tool
from agent_framework.openai import OpenAIChatCompletionClient

from cutbank.frameworks.agent_framework import CutbankHistoryProvider

FILE = "line after line of a long file\n" * 200


@tool
def read(path: str) -> str:
    """Read a file of the project."""
    return f"{path}:\n{FILE}"


async def talk(history: CutbankHistoryProvider, turns: int) -> None:
    agent = Agent(
        OpenAIChatCompletionClient(model="gpt-5-mini"),
        "Read the file that you are asked about.",
        tools=[read],
        context_providers=[history],
        middleware=[history.retry],
        require_per_service_call_history_persistence=True,
    )
    session = agent.create_session(session_id="example")
    for turn in range(turns):
        print(await agent.run(f"What does file {turn} need?", session=session))


def main() -> None:
    parser = argparse.ArgumentParser(description="an agent of the Agent Framework over cutbank")
    parser.add_argument("database")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--limit", type=int, default=200_000, help="tokens that the model holds")
    asked = parser.parse_args()
    history = CutbankHistoryProvider(asked.database, limit=asked.limit)
    try:
        asyncio.run(talk(history, asked.turns))
    finally:
        history.close()


if __name__ == "__main__":
    main()
