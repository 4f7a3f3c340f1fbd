"""An agent of LangChain whose thread is compacted while it works.

    python scripts/example_langchain.py DATABASE [--turns 3] [--limit TOKENS]

Its model is OpenAI's (OPENAI_API_KEY; OPENAI_BASE_URL where it listens elsewhere). A second start
goes on in the same thread.
"""

import argparse

from langchain.agents import create_agent
from langchain_core.tools import tool

import cutbank
from cutbank.frameworks.langchain import CutbankMiddleware
from cutbank.frameworks.langgraph import CutbankSaver

FILE = "line after line of a long file\n" * 200


@tool
def read(path: str) -> str:
    """Read a file of the project."""
    return f"{path}:\n{FILE}"


def talk(store: cutbank.SessionStore, turns: int, limit: int) -> None:
    agent = create_agent(
        "openai:gpt-5-mini",
        [read],
        system_prompt="Read the file that you are asked about.",
        checkpointer=CutbankSaver(store),
        middleware=[CutbankMiddleware(store, limit=limit)],
    )
    for turn in range(turns):
        asked = {"messages": [("user", f"What does file {turn} need?")]}
        done = agent.invoke(asked, {"configurable": {"thread_id": "example"}})
        print(done["messages"][-1].text)


def main() -> None:
    parser = argparse.ArgumentParser(description="an agent of LangChain over cutbank")
    parser.add_argument("database")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--limit", type=int, default=200_000, help="tokens that the model holds")
    asked = parser.parse_args()
    with cutbank.open(asked.database) as store:
        talk(store, asked.turns, asked.limit)


if __name__ == "__main__":
    main()
