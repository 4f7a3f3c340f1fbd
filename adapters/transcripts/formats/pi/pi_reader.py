"""Recognizes sessions of pi and of oh-my-pi, and converts their lines to steps."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from .....domain.blocks import Kind, Origin
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
from . import entry_content
from .branch_tree import BranchNode, BranchTree, SessionBranch, read_compaction_entry
from .entries import (
    PI_TITLE_FIELDS,
    RAW_ENTRY_TYPES,
    digest_message,
    entry_to_message,
    is_valid_id,
    read_call_fields,
    read_model_change,
    read_system_prompt,
)
from .entry_content import EntryContent

BRANCH_LEAD = "What follows sums up a branch that the conversation came back from:"
SUMMARY_LEAD = "What follows sums up the conversation so far:"
_CONTENT_READERS: dict[str, Callable[[JsonDict], EntryContent]] = {
    "developer": partial(entry_content.read_user_content, kind=Kind.DEVELOPER),
    "toolResult": entry_content.read_result_content,
    "bashExecution": partial(entry_content.read_execution_content, command="command", how="Ran"),
    "pythonExecution": partial(
        entry_content.read_execution_content, command="code", how="Ran Python"
    ),
    "custom": partial(entry_content.read_custom_content, owner="message"),
    "hookMessage": partial(entry_content.read_custom_content, owner="message"),
    "branchSummary": partial(
        entry_content.read_summary_content,
        name="branch_summary",
        lead=BRANCH_LEAD,
        owner="message.",
    ),
    "compactionSummary": partial(
        entry_content.read_summary_content, name="summary", lead=SUMMARY_LEAD, owner="message."
    ),
}


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
        yield from self._read_entry(entry, kind, node, line)

    def _read_entry(
        self, entry: JsonDict, kind: str, node: BranchNode, line: SourceLine
    ) -> Iterator[ImportStep]:
        if kind in PI_TITLE_FIELDS:
            yield from self._set_title(get_field(entry, PI_TITLE_FIELDS[kind], str))
        yield from self._enter_branch(node.branch)
        match kind:
            case "message":
                yield from self._read_message(entry, node, line)
            case "custom_message":
                said = entry_content.read_custom_content(entry, None)
                yield from self._append_content(said, entry, node, line, kind)
            case "branch_summary":
                said = entry_content.read_summary_content(entry, kind, BRANCH_LEAD, None)
                yield from self._append_content(said, entry, node, line, kind)
            case "compaction":
                found = read_compaction_entry(entry, node, self.tree, self.places)
                yield self._make_raw_entry(node, kind, line)
                yield found
            case "model_change":
                if model := read_model_change(entry):
                    yield RequestParameters(f"{node.id}:asked", settings={"model": model})
                yield self._make_raw_entry(node, kind, line)
            case "session_init":
                yield RequestParameters(f"{node.id}:asked", system_prompt=read_system_prompt(entry))
                yield self._make_raw_entry(node, kind, line)
            case "reset_boundary":
                yield Rewind(f"{node.id}:rewind", None)
                yield self._make_raw_entry(node, kind, line)
            case "custom":
                of = get_field(entry, "customType", str)
                yield self._make_raw_entry(node, f"{kind}/{of}" if of else kind, line)
            case _ if kind in RAW_ENTRY_TYPES or kind in PI_TITLE_FIELDS:
                yield self._make_raw_entry(node, kind, line)
            case _:
                yield self._make_unknown(node, kind, line)

    def _read_message(
        self, entry: JsonDict, node: BranchNode, line: SourceLine
    ) -> Iterator[ImportStep]:
        message = require_field(entry, "message", dict)
        role = require_field(message, "role", str, "message.")
        kind = f"message/{role}"
        read = self._find_reader(role, message, node, line)
        if read is None:
            yield self._make_unknown(node, kind, line)
        elif message.get("excludeFromContext") is True:
            yield self._make_raw_entry(node, kind, line)
        else:
            said = read(entry)
            yield from self._append_content(said, entry, node, line, kind)
            if role == "assistant":
                yield from self._report_call(message, entry, node, line)

    def _find_reader(
        self, role: str, message: JsonDict, node: BranchNode, line: SourceLine
    ) -> Callable[[JsonDict], EntryContent] | None:
        if role == "user":
            kind = self._classify_user(message, node.branch)
            return partial(entry_content.read_user_content, kind=kind)
        if role == "assistant":
            return partial(entry_content.read_assistant_content, line=line, source_id=node.id)
        return _CONTENT_READERS.get(role)

    def _classify_user(self, message: JsonDict, branch: SessionBranch) -> Kind:
        is_prompt = message.get("attribution") != "agent" or not branch.has_content
        branch.has_content = True
        return Kind.USER if is_prompt else Kind.DEVELOPER

    def _append_content(
        self, said: EntryContent, entry: JsonDict, node: BranchNode, line: SourceLine, kind: str
    ) -> Iterator[ImportStep]:
        """Append the blocks of an entry; an entry without blocks is kept raw."""
        for number, (problem, item) in enumerate(said.problems):
            self.outcome = "error"
            if number == 0 and not said.blocks:
                yield SourceProblem(line.number, problem, line.digest, line.text)
            else:
                key, raw = f"{line.digest}:refused:{number}", line.to_json(item)
                yield SourceProblem(line.number, problem, key, raw, is_part=True)
        if not said.blocks:
            if not said.problems:
                yield self._make_raw_entry(node, kind, line)
            return
        origin = _make_origin(self.name, entry, line)
        first = origin.model_copy(update={"entry": line.to_json(said.remainder)})
        node.stored_node, node.message_node, node.message_hash = (
            node,
            node,
            digest_message(entry_to_message(entry)),
        )
        several = len(said.blocks) > 1 or kind == "message/assistant"
        shared = {"message_id": node.id} if several else {}
        for index, block in enumerate(said.blocks):
            placed = block.model_copy(update={"origin": origin if index else first, **shared})
            yield Append(f"{node.id}:{index}", placed, node.id)

    def _report_call(
        self, message: JsonDict, entry: JsonDict, node: BranchNode, line: SourceLine
    ) -> Iterator[ImportStep]:
        try:
            fields = read_call_fields(message, node.id, get_field(entry, "timestamp", str))
        except MalformedError as error:
            self.outcome = "error"
            yield SourceProblem(line.number, str(error))
        else:
            yield ReportedCall(f"{node.id}:call", fields, first_answer_id=node.id)

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

    def _make_raw_entry(self, node: BranchNode, kind: str, line: SourceLine) -> RawEntry:
        node.stored_node = node
        return RawEntry(f"{node.id}:aside", kind, line.text, node.id, line.number)

    def _make_unknown(self, node: BranchNode, kind: str, line: SourceLine) -> UnknownEntry:
        node.stored_node, self.outcome = node, "unknown"
        return UnknownEntry(f"{node.id}:aside", kind, line.text, line.number, node.id)

    def _enter_branch(self, branch: SessionBranch) -> Iterator[ImportStep]:
        if self.current is not branch:
            self.current = branch
            yield branch.begin


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


def is_pi(source: TranscriptSource) -> bool:
    return find_header(source) is not None and not _has_signs_of_oh_my_pi(source.first_values)


def is_oh_my_pi(source: TranscriptSource) -> bool:
    return find_header(source) is not None and _has_signs_of_oh_my_pi(source.first_values)


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


def _has_signs_of_oh_my_pi(first: list[Any]) -> bool:
    return any(_is_sign(value) for value in first)


def _is_sign(value: Any) -> bool:
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
