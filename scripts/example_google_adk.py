"""An agent of Google's Agent Development Kit whose history is compacted while it works.

    python scripts/example_google_adk.py DATABASE [--turns 3] [--limit TOKENS]

Its model is Google's (GOOGLE_API_KEY; GOOGLE_GEMINI_BASE_URL where it listens elsewhere). A second
start goes on in the same session.
"""

import argparse
import asyncio

from google.adk.agents import Agent
from google.adk.apps import App
from google.adk.runners import Runner
from google.genai import types

from cutbank.frameworks.google_adk import CutbankPlugin, CutbankSessionService

FILE = "line after line of a long file\n" * 200


def read(path: str) -> str:
    """Read a file of the project."""
    return f"{path}:\n{FILE}"


async def talk(runner: Runner, turns: int) -> None:
    for turn in range(turns):
        asked = types.Content(role="user", parts=[types.Part(text=f"What does file {turn} need?")])
        async for event in runner.run_async(
            user_id="anna", session_id="example", new_message=asked
        ):
            if event.is_final_response() and event.content and event.content.parts:
                print(event.content.parts[0].text)


async def main() -> None:
    parser = argparse.ArgumentParser(description="an agent of Google's ADK over cutbank")
    parser.add_argument("database")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--limit", type=int, default=200_000, help="tokens that the model holds")
    asked = parser.parse_args()
    agent = Agent(
        name="gardener",
        model="gemini-2.5-flash",
        instruction="Read the file that you are asked about.",
        tools=[read],
    )
    app = App(name="example", root_agent=agent, plugins=[CutbankPlugin(limit=asked.limit)])
    async with CutbankSessionService(asked.database) as service:
        await talk(Runner(app=app, session_service=service, auto_create_session=True), asked.turns)


if __name__ == "__main__":
    asyncio.run(main())
