"""An agent of the OpenAI Agents SDK whose history is compacted while it works.

    python scripts/example_openai_agents.py DATABASE [--turns 3] [--limit TOKENS]

Its model is OpenAI's (OPENAI_API_KEY; OPENAI_BASE_URL where it listens elsewhere). A second start
goes on in the same session.
"""

import argparse
import asyncio

from agents import Agent, RunConfig, Runner, function_tool

from cutbank.frameworks.openai_agents import CutbankSession

FILE = "line after line of a long file\n" * 200


@function_tool
def read(path: str) -> str:
    """Read a file of the project."""
    return f"{path}:\n{FILE}"


async def talk(session: CutbankSession, turns: int) -> None:
    agent = Agent("Gardener", instructions="Read the file that you are asked about.", tools=[read])
    config = session.run_config(RunConfig(tracing_disabled=True))
    for turn in range(turns):
        asked = f"What does file {turn} need?"
        done = await Runner.run(
            agent, asked, session=session, run_config=config, hooks=session.hooks
        )
        print(done.final_output)


def main() -> None:
    parser = argparse.ArgumentParser(description="an agent of the OpenAI Agents SDK over cutbank")
    parser.add_argument("database")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--limit", type=int, default=200_000, help="tokens that the model holds")
    asked = parser.parse_args()
    session = CutbankSession("example", asked.database, limit=asked.limit)
    try:
        asyncio.run(talk(session, asked.turns))
    finally:
        session.close()


if __name__ == "__main__":
    main()
