"""The programs that readers of an adapter see, run with a model on the loopback."""

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from loopback.providers import KEY
from loopback.server import Loopback

ROOT = Path(__file__).parents[2]


def read_programs(module: str, heading: str) -> dict[str, str]:
    """Return the programs of a module's docstring and of its section in docs/frameworks.md."""
    page = (ROOT / "docs" / "frameworks.md").read_text(encoding="utf-8")
    (code,) = re.findall(rf"## {heading}\n\n```python\n(.*?)```", page, re.DOTALL)
    return {"module": read_docstring(module), "page": code}


def read_docstring(module: str) -> str:
    """Return the program of a module's docstring."""
    doc = import_module(f"cutbank.frameworks.{module}").__doc__ or ""
    return "\n".join(line[4:] for line in doc.splitlines() if line[:4] in ("    ", ""))


def run_program(*arguments: str, server: Loopback, cwd: Path) -> list[str]:
    """Run Python with OpenAI's and Google's models on the loopback; return what it printed."""
    model = {
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": f"{server.url}/v1",
        "GOOGLE_API_KEY": KEY,
        "GOOGLE_GEMINI_BASE_URL": server.url,
    }
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        check=False,
        cwd=cwd,
        text=True,
        env=os.environ | model | {"OPENAI_AGENTS_DISABLE_TRACING": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
