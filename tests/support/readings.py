"""Write what a reader makes of each sample and each case, one line of JSON a step.

A case is a small transcript that is named after the rule that it is made for.

When a reader has learned something new, write the files again and read in their diff that nothing
else has changed: `PYTHONPATH=tests/support python tests/support/readings.py`. Keys must never
change: a store knows by them what it has imported.
"""

import json
from dataclasses import fields, is_dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from transcripts import name_of, samples

from cutbank.adapters.transcripts.formats.catalog import FORMATS
from cutbank.adapters.transcripts.formats.source import TranscriptSource
from cutbank.adapters.transcripts.formats.steps import SourceProblem

FORMATS_FOLDER = Path(__file__).parents[1] / "transcripts" / "formats"
CASES = FORMATS_FOLDER / "cases"
FOLDER = FORMATS_FOLDER / "readings"
LONGEST = 80
"""Characters of a text that a golden file holds whole; of a longer one it holds a digest."""
LEFT_OUT = {"reason", "raw", "entry"}
"""The wording of problems, and entries as they are kept for a later export."""


def formats() -> list[str]:
    return sorted({name_of(path).partition("/")[0] for path in samples()})


def readings(name: str) -> list[str]:
    found = [path for path in samples() if name_of(path).startswith(f"{name}/")]
    cases = sorted((CASES / name).glob("*"))
    return [
        line
        for path in [*found, *cases]
        for line in (json.dumps({"of": path.name}), *reading_of(name, path))
    ]


def reading_of(name: str, path: Path) -> list[str]:
    return [
        json.dumps({"step": type(step).__name__} | plain(step) | where_of(step))
        for step in FORMATS[name].read(TranscriptSource(path))
    ]


def where_of(step: Any) -> dict[str, str]:
    """Return the field that a problem names."""
    names_one = isinstance(step, SourceProblem) and ":" in step.reason
    return {"field": step.reason.partition(":")[0]} if names_one else {}


def plain(value: Any) -> Any:
    """Return a value as plain JSON, without empty fields; a long text is shortened."""
    match value:
        case str():
            return short(value)
        case bytes():
            return short(value.hex())
        case list() | tuple():
            return [plain(one) for one in value]
        case dict() | BaseModel():
            return {name: plain(it) for name, it in dict(value).items() if is_told(name, it)}
        case _ if is_dataclass(value):
            told = {one.name: getattr(value, one.name) for one in fields(value)}
            return {name: plain(it) for name, it in told.items() if is_told(name, it)}
        case _:
            return value


def is_told(name: str, value: Any) -> bool:
    return name not in LEFT_OUT and value not in (None, (), [], "", b"", False)


def short(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return f"{text[:60]}... {len(text)} characters, {digest}"


if __name__ == "__main__":
    for name in formats():
        (FOLDER / f"{name}.jsonl").write_text("\n".join(readings(name)) + "\n", encoding="utf-8")
