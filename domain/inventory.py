"""Lists the artifacts, commands and memory reads among the blocks that a boundary removes."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from .blocks import ToolCall, ToolResult
from .compaction_events import Artifact, Digest, HiddenBlock, MemoryRead
from .digest import (
    SHELL_TOOLS,
    TouchedPaths,
    build_digest,
    map_results_by_call,
    normalize_tool_name,
    parse_names,
    read_arguments,
)
from .item import Item
from .ranges import Ranges

_MEMORY_TOOLS = parse_names(
    "memoryread memorysearch readmemory recallmemory searchmemories searchmemory searchnodes"
)
"""Tools that read a memory, normalized as in the digest's tables."""
MAX_MEMORY_HITS = 20
"""The largest number of turns and of paths listed for one memory read."""


class MadeArtifact(NamedTuple):
    """A tool's answer that names an artifact."""

    result: Item
    call: Item | None
    fields: dict[str, Any]

    @property
    def path(self) -> str:
        return str(self.fields.get("artifact_path") or self.fields.get("physical_path") or "")

    @property
    def tool(self) -> str:
        return _get_tool_name(self.call)


class MemoryLookup(NamedTuple):
    call: Item
    arguments: dict[str, Any]
    hits: list[dict[str, Any]]

    @property
    def tool(self) -> str:
        return _get_tool_name(self.call)

    @property
    def turns(self) -> tuple[str, ...]:
        return _list_first(str(hit.get("turn_id") or "") for hit in self.hits)

    @property
    def paths(self) -> tuple[str, ...]:
        return _list_first(
            str(snippet.get("path") or "")
            for hit in self.hits
            for snippet in _list_objects(hit.get("snippets"))
        )


def build_inventory(
    items: Iterable[Item],
    previous: Digest,
    hidden: Iterable[HiddenBlock] = (),
    *,
    touches: Callable[[ToolCall], TouchedPaths] | None = None,
    tracked: Iterable[str] = (),
) -> Digest:
    """Return the inventory of `items` and `hidden`, added to the previous one.

    `touches` and `tracked` concern files, as in `build_digest`.
    """
    items = tuple(items)
    paths = {one.path: one for one in (*previous.artifacts, *list_artifacts(items))}
    unseen = {one.position: one for one in (*previous.hidden, *hidden)}
    files = build_digest(items, previous, touches=touches, tracked=tracked)
    return files.model_copy(
        update={
            "artifacts": tuple(paths.values()),
            # Earlier commands are left out: in a long session they would fill most of each
            # summary's row.
            "commands": Ranges.of(find_commands(items)),
            "memory_reads": (*previous.memory_reads, *list_memory_reads(items)),
            "hidden": tuple(one for _, one in sorted(unseen.items())),
        }
    )


def find_made_artifacts(items: Sequence[Item]) -> tuple[MadeArtifact, ...]:
    """Return the artifacts that results name, each path once."""
    calls = map_calls_by_result(items)
    found: dict[str, MadeArtifact] = {}
    for item in items:
        if isinstance(item.block, ToolResult):
            told = _parse_artifact(item.block.text)
            if told:
                one = MadeArtifact(item, calls.get(item.position), told)
                found.setdefault(one.path, one)
    return tuple(found.values())


def find_memory_lookups(items: Sequence[Item]) -> Iterator[MemoryLookup]:
    answers = map_results_by_call(items)
    for item in items:
        if (
            isinstance(item.block, ToolCall)
            and normalize_tool_name(item.block.name) in _MEMORY_TOOLS
        ):
            answer = answers.get(item.position)
            if answer is not None:
                hits = _list_objects(_parse_object(answer.block.text).get("hits"))
                yield MemoryLookup(item, read_arguments(item.block), hits)


def list_artifacts(items: Sequence[Item]) -> tuple[Artifact, ...]:
    return tuple(
        Artifact(
            position=one.result.position,
            path=one.path,
            mime=_as_text(one.fields.get("mime")),
            kind=_as_text(one.fields.get("kind")),
            visibility=_as_text(one.fields.get("visibility")),
            tool=one.tool or None,
            sources=tuple(map(str, _as_list(one.fields.get("sources_used")))),
        )
        for one in find_made_artifacts(items)
    )


def list_memory_reads(items: Sequence[Item]) -> tuple[MemoryRead, ...]:
    return tuple(
        MemoryRead(
            position=one.call.position,
            query=_as_text(one.arguments.get("query")) or "",
            hits=len(one.hits),
            turns=one.turns,
            paths=one.paths,
        )
        for one in find_memory_lookups(items)
    )


def find_commands(items: Iterable[Item]) -> Iterator[int]:
    """Yield the positions of the calls that ran a command."""
    for item in items:
        if isinstance(item.block, ToolCall) and normalize_tool_name(item.block.name) in SHELL_TOOLS:
            yield item.position


def map_calls_by_result(items: Sequence[Item]) -> dict[int, Item]:
    """Return the calls among the items by the positions of their results."""
    standing = {item.position: item for item in items}
    return {
        answer.position: standing[at]
        for at, answer in map_results_by_call(items).items()
        if at in standing
    }


def _parse_artifact(text: str) -> dict[str, Any]:
    # Few results are artifacts; skip parsing the rest, and even the search if it cannot succeed.
    if not _may_be_object(text) or not ("artifact_path" in text or "physical_path" in text):
        return {}
    told = _parse_object(text)
    return (
        told if _as_text(told.get("artifact_path")) or _as_text(told.get("physical_path")) else {}
    )


def _parse_object(text: str) -> dict[str, Any]:
    if not _may_be_object(text):
        return {}
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return tree if isinstance(tree, dict) else {}


def _may_be_object(text: str) -> bool:
    return text.lstrip().startswith("{")


def _list_objects(value: object) -> list[dict[str, Any]]:
    return [entry for entry in _as_list(value) if isinstance(entry, dict)]


def _as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _as_text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _list_first(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, texts)))[:MAX_MEMORY_HITS]


def _get_tool_name(call: Item | None) -> str:
    return call.block.name if call is not None and isinstance(call.block, ToolCall) else ""
