"""What of a boundary's blocks is worth an entry in its inventory: artifacts, commands, memory."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from .blocks import ToolCall, ToolResult
from .compaction_events import Artifact, Digest, HiddenBlock, MemoryRead
from .digest import SHELLS, Touch, answers_to, arguments_of, bare_name, digest_of, names
from .item import Item
from .ranges import Ranges

MEMORIES = names(
    "memoryread memorysearch readmemory recallmemory searchmemories searchmemory searchnodes"
)
"""Tools that read a memory, named as in the tables of the digest."""
MOST = 20
"""Turns and paths that are told of one reading of a memory."""


class Made(NamedTuple):
    """A tool's answer that speaks of an artifact."""

    result: Item
    call: Item | None
    told: dict[str, Any]

    @property
    def path(self) -> str:
        return str(self.told.get("artifact_path") or self.told.get("physical_path") or "")

    @property
    def tool(self) -> str:
        return _tool(self.call)


class Remembered(NamedTuple):
    """A reading of a memory, and what was found."""

    call: Item
    asked: dict[str, Any]
    hits: list[dict[str, Any]]

    @property
    def tool(self) -> str:
        return _tool(self.call)

    @property
    def turns(self) -> tuple[str, ...]:
        return _first(str(hit.get("turn_id") or "") for hit in self.hits)

    @property
    def paths(self) -> tuple[str, ...]:
        return _first(
            str(snippet.get("path") or "")
            for hit in self.hits
            for snippet in _objects(hit.get("snippets"))
        )


def inventory_of(
    items: Iterable[Item],
    previous: Digest,
    hidden: Iterable[HiddenBlock] = (),
    *,
    touches: Callable[[ToolCall], Touch] | None = None,
    tracked: Iterable[str] = (),
) -> Digest:
    """What leaves with `items`, and what was hidden, on top of what was counted before.

    `touches` and `tracked` are about files, as in `digest_of`.
    """
    items = tuple(items)
    paths = {one.path: one for one in (*previous.artifacts, *artifacts(items))}
    unseen = {one.position: one for one in (*previous.hidden, *hidden)}
    files = digest_of(items, previous, touches=touches, tracked=tracked)
    return files.model_copy(
        update={
            "artifacts": tuple(paths.values()),
            # Not those of before: of a long session's they would be most of each summary's row.
            "commands": Ranges.of(commands(items)),
            "memory_reads": (*previous.memory_reads, *memory_reads(items)),
            "hidden": tuple(one for _, one in sorted(unseen.items())),
        }
    )


def made(items: Sequence[Item]) -> tuple[Made, ...]:
    """The artifacts that results speak of, each path once."""
    calls = calls_of(items)
    found: dict[str, Made] = {}
    for item in items:
        if isinstance(item.block, ToolResult):
            told = _artifact(item.block.text)
            if told:
                one = Made(item, calls.get(item.position), told)
                found.setdefault(one.path, one)
    return tuple(found.values())


def remembered(items: Sequence[Item]) -> Iterator[Remembered]:
    """The readings of a memory that were answered."""
    answers = answers_to(items)
    for item in items:
        if isinstance(item.block, ToolCall) and bare_name(item.block.name) in MEMORIES:
            answer = answers.get(item.position)
            if answer is not None:
                hits = _objects(_object(answer.block.text).get("hits"))
                yield Remembered(item, arguments_of(item.block), hits)


def artifacts(items: Sequence[Item]) -> tuple[Artifact, ...]:
    return tuple(
        Artifact(
            position=one.result.position,
            path=one.path,
            mime=_text(one.told.get("mime")),
            kind=_text(one.told.get("kind")),
            visibility=_text(one.told.get("visibility")),
            tool=one.tool or None,
            sources=tuple(map(str, _list(one.told.get("sources_used")))),
        )
        for one in made(items)
    )


def memory_reads(items: Sequence[Item]) -> tuple[MemoryRead, ...]:
    return tuple(
        MemoryRead(
            position=one.call.position,
            query=_text(one.asked.get("query")) or "",
            hits=len(one.hits),
            turns=one.turns,
            paths=one.paths,
        )
        for one in remembered(items)
    )


def commands(items: Iterable[Item]) -> Iterator[int]:
    """Positions of the calls that ran a command."""
    for item in items:
        if isinstance(item.block, ToolCall) and bare_name(item.block.name) in SHELLS:
            yield item.position


def calls_of(items: Sequence[Item]) -> dict[int, Item]:
    """The calls among the items by the positions of their results."""
    standing = {item.position: item for item in items}
    return {
        answer.position: standing[at] for at, answer in answers_to(items).items() if at in standing
    }


def _artifact(text: str) -> dict[str, Any]:
    # Most results are no such thing, and are not parsed: nor searched, where none can be.
    if not _may_be_object(text) or not ("artifact_path" in text or "physical_path" in text):
        return {}
    told = _object(text)
    return told if _text(told.get("artifact_path")) or _text(told.get("physical_path")) else {}


def _object(text: str) -> dict[str, Any]:
    if not _may_be_object(text):
        return {}
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return tree if isinstance(tree, dict) else {}


def _may_be_object(text: str) -> bool:
    return text.lstrip().startswith("{")


def _objects(value: object) -> list[dict[str, Any]]:
    return [entry for entry in _list(value) if isinstance(entry, dict)]


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _first(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, texts)))[:MOST]


def _tool(call: Item | None) -> str:
    return call.block.name if call is not None and isinstance(call.block, ToolCall) else ""
