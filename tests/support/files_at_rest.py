"""A database file that is written to and left, and what it looks like then."""

from pathlib import Path

from faulty import texts

import cutbank
from cutbank import Block


def write(path: Path, *words: str) -> None:
    with cutbank.open(path) as store:
        session = store.session("session")
        for word in words or ("words",):
            session.append(Block.user(word))


def said(path: Path) -> list[str]:
    with cutbank.open(path) as store:
        return texts(store.session("session", create=False))


def header_says(path: Path) -> str:
    return {1: "at rest", 2: "in use"}[path.read_bytes()[18]]


def files(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())
