"""An agent of Pydantic AI whose history is compacted while it works.

    python scripts/example_pydantic_ai.py DATABASE [--turns 3] [--limit TOKENS]

Its model is OpenAI's (OPENAI_API_KEY; OPENAI_BASE_URL where it listens elsewhere). A second start
goes on in the same conversation.
"""

import argparse

from pydantic_ai import Agent

import cutbank
from cutbank.frameworks.pydantic_ai import CutbankHistory

FILE = "line after line of a long file\n" * 200


def read(path: str) -> str:
    """Read a file of the project."""
    return f"{path}:\n{FILE}"


def talk(store: cutbank.SessionStore, turns: int, limit: int) -> None:
    history = CutbankHistory(store, limit=limit)
    agent = Agent(
        "openai-chat:gpt-5-mini",
        instructions="Read the file that you are asked about.",
        tools=[read],
        capabilities=[history],
    )
    conversation = history.load("example")
    for turn in range(turns):
        asked = f"What does file {turn} need?"
        done = agent.run_sync(asked, conversation=conversation)
        conversation = done.conversation
        print(done.output)


def main() -> None:
    parser = argparse.ArgumentParser(description="an agent of Pydantic AI over cutbank")
    parser.add_argument("database")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--limit", type=int, default=200_000, help="tokens that the model holds")
    asked = parser.parse_args()
    with cutbank.open(asked.database) as store:
        talk(store, asked.turns, asked.limit)


if __name__ == "__main__":
    main()
