"""Recognizes sessions of pi and of oh-my-pi, and converts their lines to steps."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from .....domain.blocks import BlockKind, Origin
from ..entry_steps import make_line_problem
from ..fields import JsonDict, MalformedError, find_text, get_field, json_name, require_field
from ..json_lines import NestedTooDeeplyError, SourceLine
from ..source import TranscriptSource
from ..steps import (
    Append,
    EntryEnd,
    ImportStep,
    RawEntry,
    ReportedCall,
    RequestParameters,
    Rewind,
    SessionStart,
    SkippedEntry,
    SourceProblem,
    UnknownEntry,
)
from .branch_tree import BranchNode, BranchTree, SessionBranch, read_compaction_entry
from .entries import (
    PI_TITLE_FIELDS,
    RAW_ENTRY_TYPES,
    digest_message,
    is_valid_id,
    read_call_fields,
    read_model_change,
    read_system_prompt,
)
from .entry_content import EntryContent

_ROLES = frozenset(
    {
        *("user", "developer", "custom", "hookMessage", "assistant", "toolResult"),
        *("bashExecution", "pythonExecution", "branchSummary", "compactionSummary"),
    }
)
_ENTRY_ROLES = {"custom_message": "custom", "branch_summary": "branchSummary"}
"""Entries that are messages themselves."""


@dataclass(frozen=True, slots=True)
class _PlacedEntry:
    entry: JsonDict
    kind: str
    node: BranchNode
    line: SourceLine


class PiTranscriptReader:
    def __init__(self, name: str, key: str, header: JsonDict) -> None:
        self.name = name
        title, project = find_text(header, "title"), find_text(header, "cwd")
        self.tree = BranchTree(SessionStart(key, title=title, project=project))
        version = header.get("version")
        self.is_list = not isinstance(version, int) or version < 2
        self.places: list[BranchNode | None] = []
        """Entries by place in the file, which identifies the entries of a list."""
        self.current: SessionBranch | None = None
        self.outcome = ""

    def read(self, line: SourceLine) -> Iterator[ImportStep]:
        self.outcome = "imported"
        if line.problem:
            self.outcome = "error"
            yield from self._enter_branch(self.current or self.tree.home)
            yield make_line_problem(line, line.problem)
        else:
            try:
                yield from list(self._read(line))
            except (MalformedError, NestedTooDeeplyError) as error:
                self.outcome = "error"
                branch, self.current = self.current or self.tree.home, None
                yield from self._enter_branch(branch)
                yield SourceProblem(line.number, str(error), line.digest, line.text)
        yield EntryEnd(self.outcome, line.end)

    def close(self, *, final: bool = False) -> list[ImportStep]:  # noqa: ARG002 - nothing waits
        """Return no steps: nothing is held back until the end."""
        return []

    def _read(self, line: SourceLine) -> Iterator[ImportStep]:
        entry = line.value
        if isinstance(entry, dict) and entry.get("type") == "title":
            yield from self._read_title_slot(entry, line)
            return
        self.places.append(None)
        if not isinstance(entry, dict):
            raise MalformedError(f"expected an object, got {json_name(entry)}")
        kind = require_field(entry, "type", str)
        if kind == "session":
            yield from self._enter_branch(self.tree.home)
            yield RawEntry(f"header:{line.digest}", kind, line.text, line=line.number)
            return
        digest = hash(line.raw)
        id = self._entry_id(entry, line)
        if known := self.tree.nodes.get(id):
            yield from self._repeat_entry(known, kind, digest)
            return
        parent, complaint = self._find_parent(entry)
        node = self.places[-1] = self.tree.add(id, parent, digest)
        if complaint:
            yield SourceProblem(line.number, complaint)
        if kind in PI_TITLE_FIELDS:
            yield from self._set_title(get_field(entry, PI_TITLE_FIELDS[kind], str))
        yield from self._enter_branch(node.branch)
        yield from self._read_entry(_PlacedEntry(entry, kind, node, line))

    def _read_entry(self, at: _PlacedEntry) -> Iterator[ImportStep]:
        match at.kind:
            case "message":
                message = require_field(at.entry, "message", dict)
                role = require_field(message, "role", str, "message.")
                yield from self._read_message(replace(at, kind=f"message/{role}"), role, message)
            case "custom_message" | "branch_summary":
                yield from self._read_message(at, _ENTRY_ROLES[at.kind], at.entry)
            case "compaction":
                found = read_compaction_entry(at.entry, at.node, self.tree, self.places)
                yield self._keep_raw(at)
                yield found
            case "custom":
                of = get_field(at.entry, "customType", str)
                yield self._keep_raw(replace(at, kind=f"custom/{of}") if of else at)
            case _ if at.kind in RAW_ENTRY_TYPES or at.kind in PI_TITLE_FIELDS:
                yield from _read_effects(at)
                yield self._keep_raw(at)
            case _:
                yield self._keep_unknown(at)

    def _read_message(self, at: _PlacedEntry, role: str, message: JsonDict) -> Iterator[ImportStep]:
        user_kind = BlockKind.USER
        if role == "user":
            branch = at.node.branch
            if message.get("attribution") == "agent" and branch.has_content:
                user_kind = BlockKind.DEVELOPER
            branch.has_content = True
        if role not in _ROLES:
            yield self._keep_unknown(at)
            return
        if message.get("excludeFromContext") is True and message is not at.entry:
            yield self._keep_raw(at)
            return
        content = EntryContent(at.entry, is_message=message is not at.entry)
        content.read(role, user_kind, at.line, at.node.id)
        yield from self._append_content(content, at, digest_message({**message, "role": role}))
        if role == "assistant":
            yield from self._report_call(message, at)

    def _append_content(
        self, content: EntryContent, at: _PlacedEntry, message_hash: int
    ) -> Iterator[ImportStep]:
        """Append the blocks of an entry; an entry without blocks is kept raw."""
        line, node = at.line, at.node
        for number, (problem, item) in enumerate(content.problems):
            self.outcome = "error"
            if number == 0 and not content.blocks:
                yield SourceProblem(line.number, problem, line.digest, line.text)
            else:
                key, raw = f"{line.digest}:refused:{number}", line.to_json(item)
                yield SourceProblem(line.number, problem, key, raw, is_part=True)
        if not content.blocks:
            if not content.problems:
                yield self._keep_raw(at)
            return
        origin = _make_origin(self.name, at.entry, line)
        node.stored_node = node.message_node = node
        node.message_hash = message_hash
        several = len(content.blocks) > 1 or at.kind == "message/assistant"
        shared = {"message_id": node.id} if several else {}
        for index, block in enumerate(content.blocks):
            placed = block.model_copy(update={"origin": origin, **shared})
            yield Append(f"{node.id}:{index}", placed, node.id)

    def _report_call(self, message: JsonDict, at: _PlacedEntry) -> Iterator[ImportStep]:
        id = at.node.id
        try:
            fields = read_call_fields(message, id, get_field(at.entry, "timestamp", str))
        except MalformedError as error:
            self.outcome = "error"
            yield SourceProblem(at.line.number, str(error))
        else:
            yield ReportedCall(f"{id}:call", fields, first_answer_id=id)

    def _read_title_slot(self, entry: JsonDict, line: SourceLine) -> Iterator[ImportStep]:
        """Read the line before the header, which is rewritten when the title changes."""
        if title := get_field(entry, "title", str):
            yield from self._set_title(title)
        yield from self._enter_branch(self.tree.home)
        yield RawEntry("title", "title", line.text, line=line.number)

    def _set_title(self, title: str | None) -> Iterator[ImportStep]:
        if title and title != self.tree.home.begin.title:
            self.tree.set_title(title)
            self.current = None
            yield from self._enter_branch(self.tree.home)

    def _repeat_entry(self, known: BranchNode, kind: str, digest: int) -> Iterator[ImportStep]:
        if known.line_hash != digest:
            raise MalformedError(f"id: another entry has the id {known.id}")
        self.outcome = "skipped"
        yield SkippedEntry(kind, "repeated id")

    def _entry_id(self, entry: JsonDict, line: SourceLine) -> str:
        """Return the entry's own id, or else one made of its place and content."""
        id = None if self.is_list else get_field(entry, "id", str)
        if id is None:
            return f"{len(self.places)}:{line.digest[5:21]}"
        if not is_valid_id(id):
            raise MalformedError("id: expected an id, but it is empty or holds NUL")
        return id

    def _find_parent(self, entry: JsonDict) -> tuple[BranchNode | None, str | None]:
        """Return the parent entry, and the problem with its reference."""
        if self.is_list or "parentId" not in entry:
            return self.tree.newest, None
        named = get_field(entry, "parentId", str)
        if named is None:
            return None, None
        if found := self.tree.nodes.get(named):
            return found, None
        return self.tree.newest, f"parentId: no entry {named} stands before this one"

    def _keep_raw(self, at: _PlacedEntry) -> RawEntry:
        at.node.stored_node = at.node
        return RawEntry(f"{at.node.id}:aside", at.kind, at.line.text, at.node.id, at.line.number)

    def _keep_unknown(self, at: _PlacedEntry) -> UnknownEntry:
        at.node.stored_node, self.outcome = at.node, "unknown"
        return UnknownEntry(
            f"{at.node.id}:aside", at.kind, at.line.text, at.line.number, at.node.id
        )

    def _enter_branch(self, branch: SessionBranch) -> Iterator[ImportStep]:
        if self.current is not branch:
            self.current = branch
            yield branch.begin


def _read_effects(at: _PlacedEntry) -> Iterator[ImportStep]:
    """Yield what an entry that is kept raw changes in the session."""
    match at.kind:
        case "model_change":
            if model := read_model_change(at.entry):
                yield RequestParameters(f"{at.node.id}:asked", settings={"model": model})
        case "session_init":
            prompt = read_system_prompt(at.entry)
            yield RequestParameters(f"{at.node.id}:asked", system_prompt=prompt)
        case "reset_boundary":
            yield Rewind(f"{at.node.id}:rewind", None)


def _make_origin(name: str, entry: JsonDict, line: SourceLine) -> Origin:
    id, time = entry.get("id"), entry.get("timestamp")
    return Origin(
        format=name,
        id=id if isinstance(id, str) else None,
        time=time if isinstance(time, str) else None,
        line=line.number,
    )


PI = "pi"
OH_MY_PI = "oh-my-pi"

_HEADER_FIELDS = {"title", "titleSource", "additionalDirectories", "previousSessionFiles"}
"""Fields that only oh-my-pi's headers have."""
_OH_MY_PI_TYPES = {
    *("archive", "credential_pin", "mode_change", "model_usage", "reset_boundary"),
    *("service_tier_change", "session_init", "title_change", "ttsr_injection"),
}
"""Types of entries that only oh-my-pi has."""


def is_from_pi(name: str, source: TranscriptSource) -> bool:
    """Return whether this is a session of the agent with this name: pi, or its fork."""
    named = OH_MY_PI if any(map(_is_sign, source.first_values)) else PI
    return named == name and find_header(source) is not None


def begin_reading(name: str, source: TranscriptSource) -> PiTranscriptReader:
    header = find_header(source) or {}
    id = header.get("id")
    key = id if isinstance(id, str) and is_valid_id(id) else source.stem
    return PiTranscriptReader(name, key, header)


def find_header(source: TranscriptSource) -> JsonDict | None:
    """Return the header: the first line, or the second after a title line."""
    for value in source.first_values[:2]:
        match value:
            case {"type": "session", "id": str(), "timestamp": str()}:
                return dict(value)
            case {"type": "title"}:
                pass
            case _:
                return None
    return None


def _is_sign(value: Any) -> bool:
    """Return whether only oh-my-pi writes such a line."""
    match value:
        case {"type": "session"}:
            return not _HEADER_FIELDS.isdisjoint(value)
        case {"type": "model_change"}:
            return "model" in value
        case {"type": "custom", "customType": "tool_execution_start" | "session_exit"}:
            return True
        case {"type": str(kind)}:
            return kind == "title" or kind in _OH_MY_PI_TYPES
        case _:
            return False
