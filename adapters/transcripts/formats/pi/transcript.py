"""Folds the lines of a session of pi into steps."""

from collections.abc import Callable, Iterator

from .....domain.blocks import Kind, Origin
from ..json_lines import Line, NestedTooDeeplyError
from ..reading.entry_steps import refused
from ..reading.fields import Item, MalformedError, json_name, take, take_optional, text_in
from ..steps import (
    Append,
    Aside,
    Asked,
    Begin,
    Call,
    EntryRead,
    Problem,
    Rewind,
    Skipped,
    Step,
    Unknown,
)
from . import content
from .compaction import compacted
from .content import Content
from .entries import (
    KEPT,
    TITLES,
    as_message,
    call_of,
    digest_of,
    is_name,
    model_of,
    system_prompt_of,
)
from .tree import Branch, Node, Tree

BRANCH_LEAD = "What follows sums up a branch that the conversation came back from:"
SUMMARY_LEAD = "What follows sums up the conversation so far:"


class Transcript:
    """What is known of a file at some line of it."""

    def __init__(self, name: str, key: str, header: Item) -> None:
        self.name = name
        title, project = text_in(header, "title"), text_in(header, "cwd")
        self.tree = Tree(Begin(key, title=title, project=project))
        version = header.get("version")
        self.is_list = not isinstance(version, int) or version < 2
        self.places: list[Node | None] = []
        """What stands at each place of the file, for a list names its entries by that."""
        self.current: Branch | None = None
        self.outcome = ""

    def read(self, line: Line) -> Iterator[Step]:
        """The steps of one line."""
        self.outcome = "imported"
        if line.problem:
            self.outcome = "error"
            yield from self._enter(self.current or self.tree.home)
            yield refused(line, line.problem)
        else:
            try:
                yield from list(self._read(line))
            except (MalformedError, NestedTooDeeplyError) as error:
                self.outcome = "error"
                branch, self.current = self.current or self.tree.home, None
                yield from self._enter(branch)
                yield Problem(line.number, str(error), line.digest, line.text)
        yield EntryRead(self.outcome, line.end)

    def close(self, *, final: bool = False) -> list[Step]:  # noqa: ARG002 - nothing waits
        """Nothing is held back until the end."""
        return []

    def _read(self, line: Line) -> Iterator[Step]:
        entry = line.value
        if isinstance(entry, dict) and entry.get("type") == "title":
            yield from self._slot(entry, line)
            return
        self.places.append(None)
        if not isinstance(entry, dict):
            raise MalformedError(f"expected an object, got {json_name(entry)}")
        kind = take(entry, "type", str)
        if kind == "session":
            yield from self._enter(self.tree.home)
            yield Aside(f"header:{line.digest}", kind, line.text, line=line.number)
            return
        digest = hash(line.raw)
        id = self._id(entry, line)
        if known := self.tree.nodes.get(id):
            yield from self._again(known, kind, digest)
            return
        parent, complaint = self._parent(entry)
        node = self.places[-1] = self.tree.add(id, parent, digest)
        if complaint:
            yield Problem(line.number, complaint)
        yield from self._entry(entry, kind, node, line)

    def _entry(self, entry: Item, kind: str, node: Node, line: Line) -> Iterator[Step]:
        if kind in TITLES:
            yield from self._title(take_optional(entry, TITLES[kind], str))
        yield from self._enter(node.branch)
        match kind:
            case "message":
                yield from self._message(entry, node, line)
            case "custom_message":
                said = content.custom_content(entry, None)
                yield from self._say(said, entry, node, line, kind)
            case "branch_summary":
                said = content.summary_content(entry, kind, BRANCH_LEAD, None)
                yield from self._say(said, entry, node, line, kind)
            case "compaction":
                found = compacted(entry, node, self.tree, self.places)
                yield self._aside(node, kind, line)
                yield found
            case "model_change":
                if model := model_of(entry):
                    yield Asked(f"{node.id}:asked", settings={"model": model})
                yield self._aside(node, kind, line)
            case "session_init":
                yield Asked(f"{node.id}:asked", system_prompt=system_prompt_of(entry))
                yield self._aside(node, kind, line)
            case "reset_boundary":
                yield Rewind(f"{node.id}:rewind", None)
                yield self._aside(node, kind, line)
            case "custom":
                of = take_optional(entry, "customType", str)
                yield self._aside(node, f"{kind}/{of}" if of else kind, line)
            case _ if kind in KEPT or kind in TITLES:
                yield self._aside(node, kind, line)
            case _:
                yield self._unknown(node, kind, line)

    def _message(self, entry: Item, node: Node, line: Line) -> Iterator[Step]:
        message = take(entry, "message", dict)
        role = take(message, "role", str, "message.")
        kind = f"message/{role}"
        read = self._reader(role, message, node, line)
        if read is None:
            yield self._unknown(node, kind, line)
        elif message.get("excludeFromContext") is True:
            yield self._aside(node, kind, line)
        else:
            said = read(entry)
            yield from self._say(said, entry, node, line, kind)
            if role == "assistant":
                yield from self._called(message, entry, node, line)

    def _reader(
        self, role: str, message: Item, node: Node, line: Line
    ) -> Callable[[Item], Content] | None:
        match role:
            case "user":
                kind = self._who(message, node.branch)
                return lambda entry: content.user_content(entry, kind)
            case "developer":
                return lambda entry: content.user_content(entry, Kind.DEVELOPER)
            case "assistant":
                return lambda entry: content.assistant_content(entry, line, node.id)
            case "toolResult":
                return content.result_content
            case "bashExecution":
                return lambda entry: content.execution_content(entry, "command", "Ran")
            case "pythonExecution":
                return lambda entry: content.execution_content(entry, "code", "Ran Python")
            case "custom" | "hookMessage":
                return lambda entry: content.custom_content(entry, "message")
            case "branchSummary":
                return lambda entry: content.summary_content(
                    entry, "branch_summary", BRANCH_LEAD, "message."
                )
            case "compactionSummary":
                return lambda entry: content.summary_content(
                    entry, "summary", SUMMARY_LEAD, "message."
                )
            case _:
                return None

    def _who(self, message: Item, branch: Branch) -> Kind:
        """A person, but for what an agent says after the task that a sub-agent begins with."""
        is_prompt = message.get("attribution") != "agent" or not branch.prompted
        branch.prompted = True
        return Kind.USER if is_prompt else Kind.DEVELOPER

    def _say(self, said: Content, entry: Item, node: Node, line: Line, kind: str) -> Iterator[Step]:
        """The blocks of an entry; one without any is kept raw."""
        for number, (problem, item) in enumerate(said.problems):
            self.outcome = "error"
            if number == 0 and not said.blocks:
                yield Problem(line.number, problem, line.digest, line.text)
            else:
                key, raw = f"{line.digest}:refused:{number}", line.json(item)
                yield Problem(line.number, problem, key, raw, is_part=True)
        if not said.blocks:
            if not said.problems:
                yield self._aside(node, kind, line)
            return
        origin = _origin(self.name, entry, line)
        first = origin.model_copy(update={"entry": line.json(said.rest)})
        node.stands, node.spoke, node.said = node, node, digest_of(as_message(entry))
        several = len(said.blocks) > 1 or kind == "message/assistant"
        shared = {"message_id": node.id} if several else {}
        for index, block in enumerate(said.blocks):
            placed = block.model_copy(update={"origin": origin if index else first, **shared})
            yield Append(f"{node.id}:{index}", placed, node.id)

    def _called(self, message: Item, entry: Item, node: Node, line: Line) -> Iterator[Step]:
        try:
            fields = call_of(message, node.id, take_optional(entry, "timestamp", str))
        except MalformedError as error:
            self.outcome = "error"
            yield Problem(line.number, str(error))
        else:
            yield Call(f"{node.id}:call", fields, before=node.id)

    def _slot(self, entry: Item, line: Line) -> Iterator[Step]:
        """The line before the header, which is written anew whenever the title changes."""
        if title := take_optional(entry, "title", str):
            yield from self._title(title)
        yield from self._enter(self.tree.home)
        yield Aside("title", "title", line.text, line=line.number)

    def _title(self, title: str | None) -> Iterator[Step]:
        if title and title != self.tree.home.begin.title:
            self.tree.entitle(title)
            self.current = None
            yield from self._enter(self.tree.home)

    def _again(self, known: Node, kind: str, digest: int) -> Iterator[Step]:
        if known.line != digest:
            raise MalformedError(f"id: another entry has the id {known.id}")
        self.outcome = "skipped"
        yield Skipped(kind, "repeated id")

    def _id(self, entry: Item, line: Line) -> str:
        """The entry's own id, or else its place and what it says."""
        id = None if self.is_list else take_optional(entry, "id", str)
        if id is None:
            return f"{len(self.places)}:{line.digest[5:21]}"
        if not is_name(id):
            raise MalformedError("id: expected an id, but it is empty or holds NUL")
        return id

    def _parent(self, entry: Item) -> tuple[Node | None, str | None]:
        """The entry that this one follows, and what is wrong with how it says so."""
        if self.is_list or "parentId" not in entry:
            return self.tree.newest, None
        named = take_optional(entry, "parentId", str)
        if named is None:
            return None, None
        if found := self.tree.nodes.get(named):
            return found, None
        return self.tree.newest, f"parentId: no entry {named} stands before this one"

    def _aside(self, node: Node, kind: str, line: Line) -> Aside:
        node.stands = node
        return Aside(f"{node.id}:aside", kind, line.text, node.id, line.number)

    def _unknown(self, node: Node, kind: str, line: Line) -> Unknown:
        node.stands, self.outcome = node, "unknown"
        return Unknown(f"{node.id}:aside", kind, line.text, line.number, node.id)

    def _enter(self, branch: Branch) -> Iterator[Step]:
        if self.current is not branch:
            self.current = branch
            yield branch.begin


def _origin(name: str, entry: Item, line: Line) -> Origin:
    id, time = entry.get("id"), entry.get("timestamp")
    return Origin(
        format=name,
        id=id if isinstance(id, str) else None,
        time=time if isinstance(time, str) else None,
        line=line.number,
    )
