"""An agent of Strands whose history is compacted while it works.

    python scripts/example_strands.py DATABASE [--turns 3] [--limit TOKENS]

Its model is OpenAI's (OPENAI_API_KEY; OPENAI_BASE_URL where it listens elsewhere). A second start
goes on in the same session.
"""

import argparse

from strands import Agent, tool
from strands.models.openai import OpenAIModel
from strands.session import RepositorySessionManager

import cutbank
from cutbank.frameworks.strands import CutbankConversationManager, CutbankSessionRepository

FILE = "line after line of a long file\n" * 200


@tool
def read(path: str) -> str:
    """Read a file of the project."""
    return f"{path}:\n{FILE}"


def talk(store: cutbank.SessionStore, turns: int, limit: int) -> None:
    repository = CutbankSessionRepository(store)
    agent = Agent(
        OpenAIModel(model_id="gpt-5-mini"),
        system_prompt="Read the file that you are asked about.",
        tools=[read],
        session_manager=RepositorySessionManager("example", repository),
        conversation_manager=CutbankConversationManager(repository, "example", limit=limit),
        callback_handler=None,
    )
    for turn in range(turns):
        print(str(agent(f"What does file {turn} need?")).strip())


def main() -> None:
    parser = argparse.ArgumentParser(description="an agent of Strands over cutbank")
    parser.add_argument("database")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--limit", type=int, default=200_000, help="tokens that the model holds")
    asked = parser.parse_args()
    with cutbank.open(asked.database) as store:
        talk(store, asked.turns, asked.limit)


if __name__ == "__main__":
    main()
