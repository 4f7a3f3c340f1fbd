"""Recognizes sessions of pi and of oh-my-pi, and converts their lines to steps."""

from collections.abc import Iterable
from typing import Any

from .....domain.blocks import BlockKind
from ..entry_steps import EntrySteps, read_entry
from ..fields import JsonDict, MalformedError, find_text, get_field, json_name, require_field
from ..format import LineReader
from ..json_lines import SourceLine
from ..source import TranscriptSource
from ..steps import (
    ImportStep,
    ReportedCall,
    RequestParameters,
    Rewind,
    SessionStart,
)
from .branch_tree import BranchNode, BranchTree, SessionBranch, read_compaction_entry
from .entries import (
    PI_ROLES,
    PI_TITLE_FIELDS,
    STATE_ENTRY_TYPES,
    SystemMessages,
    digest_message,
    is_valid_id,
    read_call_fields,
    read_model_change,
    read_pi_content,
    read_spent,
    read_system_prompt,
)

_ENTRY_ROLES = {"custom_message": "custom", "branch_summary": "branchSummary"}
"""Entries that are messages themselves."""


class PiTranscriptReader(LineReader):
    def __init__(
        self, name: str, key: str, header: JsonDict, *, parent_key: str | None = None
    ) -> None:
        self.name = name
        title, project = find_text(header, "title"), find_text(header, "cwd")
        self.tree = BranchTree(SessionStart(key, title, parent_key, project=project))
        version = header.get("version")
        self.is_list = not isinstance(version, int) or version < 2
        self.places: list[BranchNode | None] = []
        """Entries by place in the file, which identifies the entries of a list."""
        self.current: SessionBranch | None = None
        self.system = SystemMessages()

    def read(self, line: SourceLine) -> Iterable[ImportStep]:
        entry = EntrySteps(self.name, line, line.number, line.value)
        if line.problem:
            self._enter_branch(entry, self.current or self.tree.home)
        return read_entry(entry, self._read)

    def _read(self, entry: EntrySteps) -> None:
        try:
            self._read_line(entry, entry.line)
        except MalformedError:
            entry.steps.clear()
            branch, self.current = self.current or self.tree.home, None
            self._enter_branch(entry, branch)
            raise

    def _read_line(self, entry: EntrySteps, line: SourceLine) -> None:
        item = entry.value
        if isinstance(item, dict) and item.get("type") == "title":
            # The line before the header, which is rewritten when the title changes.
            self._set_title(entry, get_field(item, "title", str))
            self._enter_branch(entry, self.tree.home)
            entry.skip()
            return
        self.places.append(None)
        if not isinstance(item, dict):
            raise MalformedError(f"expected an object, got {json_name(item)}")
        kind = require_field(item, "type", str)
        if kind == "session":
            self._enter_branch(entry, self.tree.home)
            entry.skip()
            return
        digest = hash(line.raw)
        id = self._entry_id(item, line)
        if known := self.tree.nodes.get(id):
            if known.line_hash != digest:
                raise MalformedError(f"id: another entry has the id {known.id}")
            entry.skip("repeated id")
            return
        parent, complaint = self._find_parent(item)
        node = self.places[-1] = self.tree.add(id, parent, digest)
        if complaint:
            entry.add_problem(complaint)
        if kind in PI_TITLE_FIELDS:
            self._set_title(entry, get_field(item, PI_TITLE_FIELDS[kind], str))
        self._enter_branch(entry, node.branch)
        named, time = item.get("id"), item.get("timestamp")
        entry.key, entry.id = id, named if isinstance(named, str) else None
        entry.time = time if isinstance(time, str) else None
        self._read_item(entry, node, item, kind)

    def _read_item(self, entry: EntrySteps, node: BranchNode, item: JsonDict, kind: str) -> None:
        match kind:
            case "message":
                message = require_field(item, "message", dict)
                role = require_field(message, "role", str, "message.")
                self._read_message(entry, node, f"message/{role}", role, message)
            case "custom_message" | "branch_summary":
                self._read_message(entry, node, kind, _ENTRY_ROLES[kind], item)
            case "compaction":
                found = read_compaction_entry(item, node, self.tree, self.places)
                if state := get_field(item, "systemMessage", dict):
                    self.system = SystemMessages()
                    entry.add(self._read_system(node, state))
                node.stored_node = node
                entry.mark_compaction(kind, f"{node.id}:aside", node.id)
                entry.add(found)
            case _ if kind in STATE_ENTRY_TYPES or kind in PI_TITLE_FIELDS:
                _read_effects(entry, kind, item)
                entry.skip()
            case _:
                entry.add_unknown(kind)

    def _read_message(
        self, entry: EntrySteps, node: BranchNode, kind: str, role: str, message: JsonDict
    ) -> None:
        user_kind = BlockKind.USER
        if role == "user":
            if message.get("attribution") == "agent" and node.branch.has_content:
                user_kind = BlockKind.DEVELOPER
            node.branch.has_content = True
        if role == "system":
            entry.add(self._read_system(node, message))
            return
        if role not in PI_ROLES:
            entry.add_unknown(kind)
            return
        if message is not entry.value and message.get("excludeFromContext") is True:
            entry.skip()
            return
        read_pi_content(entry, message, role, user_kind)
        several = len(entry.blocks) > 1 or kind == "message/assistant"
        if entry.append(node.id if several else None):
            node.stored_node = node.message_node = node
            node.message_hash = digest_message({**message, "role": role})
        if kind == "branch_summary" and message.get("usage"):
            fields = {"call_id": node.id, **read_spent(message), "source_time": entry.time}
            entry.add(ReportedCall(f"{node.id}:call", fields))
        if role == "assistant":
            try:
                time = get_field(entry.value, "timestamp", str)
                fields = read_call_fields(message, node.id, time)
            except MalformedError as error:
                entry.add_problem(str(error))
            else:
                entry.add(ReportedCall(f"{node.id}:call", fields, first_answer_id=node.id))

    def _read_system(self, node: BranchNode, message: JsonDict) -> RequestParameters:
        return RequestParameters(f"{node.id}:asked", *self.system.read(message))

    def _set_title(self, entry: EntrySteps, title: str | None) -> None:
        if title and title != self.tree.home.begin.title:
            self.tree.set_title(title)
            self.current = None
            self._enter_branch(entry, self.tree.home)

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

    def _enter_branch(self, entry: EntrySteps, branch: SessionBranch) -> None:
        if self.current is not branch:
            self.current = branch
            entry.add(branch.begin)


def _read_effects(entry: EntrySteps, kind: str, item: JsonDict) -> None:
    """Record what an entry without content changes in the session."""
    match kind:
        case "model_change":
            if model := read_model_change(item):
                entry.add(RequestParameters(f"{entry.key}:asked", settings={"model": model}))
        case "session_init":
            prompt = read_system_prompt(item)
            entry.add(RequestParameters(f"{entry.key}:asked", system_prompt=prompt))
        case "reset_boundary":
            entry.add(Rewind(f"{entry.key}:rewind", None))


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
    return PiTranscriptReader(name, key, header, parent_key=_find_parent_key(source, header))


def _find_parent_key(source: TranscriptSource, header: JsonDict) -> str | None:
    """Return the session that started a sub-agent, which names the parent's file.

    A fork names its parent as well, and has no `session_init`.
    """
    kinds = [value.get("type") for value in source.first_values if isinstance(value, dict)]
    parent = find_text(header, "parentSession") or ""
    if "session_init" not in kinds or not parent.endswith(".jsonl"):
        return None
    return parent.removesuffix(".jsonl").rpartition("_")[2]


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
