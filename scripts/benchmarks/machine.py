"""Where it is measured, and with what."""

import os
import platform
import sqlite3
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from statistics import median

from .timing import elapsed

PACKAGES = ("eventsourcing", "pydantic", "orjson", "zstandard")


def machine(folder: Path) -> dict[str, str]:
    """What a figure depends on, and the load that was there before."""
    with (folder / "fsync").open("wb", buffering=0) as file:
        synced = [file.write(b"x" * 4_096) and elapsed(os.fsync, file) for _ in range(50)]
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _commit(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "load before": load(),
        "fsync": f"{median(synced) * 1e6:.0f} us",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        **{package: metadata.version(package) for package in PACKAGES},
    }


def load() -> str:
    """Processes that wanted to run in the last minute."""
    return f"{os.getloadavg()[0]:.1f}"


def _commit() -> str:
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        return subprocess.check_output(command, text=True, stderr=subprocess.DEVNULL).strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"  # not a checkout
