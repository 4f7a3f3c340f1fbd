"""An agent of the Claude Agent SDK whose transcript is kept in a log, and resumed from it.

    python scripts/example_claude_agent.py DATABASE "What is in this folder?"

Its model is Anthropic's (ANTHROPIC_API_KEY; ANTHROPIC_BASE_URL where it listens elsewhere). Started
again, it resumes the newest session of the folder.
"""

import argparse
import asyncio

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, project_key_for_directory, query

from cutbank.frameworks.claude_agent import CutbankSessionStore


async def ask(store: CutbankSessionStore, prompt: str) -> str | None:
    sessions = await store.list_sessions(project_key_for_directory())
    newest = max(sessions, key=lambda session: session["mtime"], default=None)
    options = ClaudeAgentOptions(
        session_store=store, resume=newest["session_id"] if newest else None, max_turns=20
    )
    answer = None
    async for message in query(prompt=prompt, options=options):
        if isinstance(message, ResultMessage):
            answer = message.result
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description="an agent of the Claude Agent SDK over cutbank")
    parser.add_argument("database")
    parser.add_argument("prompt")
    asked = parser.parse_args()
    store = CutbankSessionStore(asked.database)
    try:
        print(asyncio.run(ask(store, asked.prompt)))
    finally:
        store.close()


if __name__ == "__main__":
    main()
