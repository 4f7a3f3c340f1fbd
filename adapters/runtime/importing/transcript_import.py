"""Stores the steps of one transcript in order, in batches."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from eventsourcing.persistence import IntegrityError

from ....domain.blocks import ToolCall
from ....domain.compaction import RECORDED_LINEAGE
from ....domain.errors import NotFoundError
from ....domain.session_events import Parent
from ....domain.token_estimate import count_characters
from ...storage.event_log.log_tables import ImportRow
from ...storage.event_log.source_segments import SourceKeeper
from ...transcripts.formats.source import TranscriptSource
from ...transcripts.formats.steps import (
    Append,
    EntryEnd,
    ImportStep,
    ReportedCall,
    RequestParameters,
    Rewind,
    SessionStart,
    SkippedEntry,
    SourceCompaction,
    SourceProblem,
    SubAgentLink,
    UnknownEntry,
)
from ...transcripts.reports import FileReport
from ..sessions.session_store import SessionStore
from ..sessions.stored_session import StoredSession
from .import_batch import UNANSWERED_REASON, BatchStep, ImportBatch, ImportTarget
from .source_decisions import record_rewind, record_shortening, record_source_compaction


@dataclass(frozen=True, slots=True)
class ImportOptions:
    namespace: str | None = None
    """Where sessions go; None: to `default`, and those of a database to their old namespace."""
    redacts: bool = False
    """Whether to replace secrets before anything is stored."""
    keeps_sources: bool = True
    """Whether to keep the bytes of each file, without its secrets if it is redacted."""

    @property
    def target_namespace(self) -> str:
        return self.namespace or "default"


DEFAULT_OPTIONS = ImportOptions()


class SubAgentLinks:
    """The links found so far by one import."""

    def __init__(self) -> None:
        self.known: dict[str, SubAgentLink] = {}
        self.unsettled: list[ImportRow] = []
        """The rows that mark files as complete, to be stored once their sub-agents are."""

    def begin(self, key: str) -> None:
        """Note that a file of the session `key` is about to be stored."""


def record_parents(store: SessionStore, namespace: str, links: Iterable[SubAgentLink]) -> None:
    """Record the parent of each sub-agent that is already stored."""
    for link in links:
        if not _is_stored(store, namespace, link.key):
            continue  # set when it is opened
        agent = store.session(link.key, namespace=namespace)
        parent = Parent(namespace=namespace, key=link.parent_key, tool_call_id=link.parent_call)
        if agent.log.parent != parent:
            agent.configure(parent=parent)


def _is_stored(store: SessionStore, namespace: str, key: str) -> bool:
    return store.events.load_session(namespace, key) is not None


MAX_BATCH_CHARACTERS = 4_000_000
"""The most text in one transaction, unless a single block is larger."""


_OUTCOMES = ("skipped", "imported", "unknown", "error")
_SKIPPED, _IMPORTED, _UNKNOWN, _ERROR = range(4)


class TranscriptImport:
    """Turns the steps of one file into decisions, batch by batch.

    Raises ImportFileError if secrets are to be replaced and the extra is not installed.
    """

    def __init__(
        self,
        store: SessionStore,
        options: ImportOptions,
        path: Path,
        links: SubAgentLinks,
        report_bytes: Callable[[int], None] | None = None,
        *,
        name: str | None = None,
    ) -> None:
        self.store = store
        self.namespace = options.target_namespace
        self.name = name or str(path.resolve())
        """The name under which the import's progress is stored."""
        self.report = FileReport(name or str(path))
        redactor = None
        if options.redacts:
            from ...transcripts.redaction.redactor import Redactor  # noqa: PLC0415 - needs the extra

            redactor = Redactor(str(path))
            self.name = redactor.redact_text(self.name)
            self.report = FileReport(redactor.redact_text(str(path)), redacted=redactor.found)
        self.source = TranscriptSource(path, redact=redactor)
        self.links = links
        self.report_bytes = report_bytes
        self.stamp: str | None = None
        """The file's stamp when reading began."""
        self.keeper = SourceKeeper() if options.keeps_sources else None
        """Collects the bytes of the source, unless they are not kept."""
        self.row = store.events.recorder.select_import(self.namespace, self.name)
        """What an earlier import of the file stored of it."""
        self.told: list[SubAgentLink] = []
        """The sub-agent links that this file holds."""
        self.targets: dict[str, ImportTarget] = {}
        self.current: ImportTarget | None = None
        self.batch: list[tuple[ImportTarget, BatchStep]] = []
        self.batched = 0
        """The characters in the batch."""
        self.offset = 0
        self.outcome = _SKIPPED
        """How the entry went so far, as an index of `_OUTCOMES`: the highest of its steps."""
        self.skip_reason: str | None = None
        """The reason if its reader skipped the entry."""

    def run(self, steps: Iterable[ImportStep]) -> None:
        """Store the steps of a whole file; an error in reading it is reported."""
        try:
            for step in steps:
                self.add_step(step)
            self.finish()
        except OSError as error:
            reason = error.strerror or error
            self.report.errors.append(f"{self.report.path}: reading stopped: {reason}")
        finally:
            if not self.report.complete:
                # Keep what was read before the error, with its progress.
                self.flush()

    def add_step(self, step: ImportStep) -> None:
        match step:
            case SessionStart(key=key):
                if step.fork_of and key not in self.targets:
                    self.flush()  # it begins at what is stored by then
                if key not in self.targets:
                    if not self.targets:
                        self.links.begin(key)
                    self.targets[key] = ImportTarget(step)
                self.current = self.targets[key]
                self.current.title = step.title or self.current.title
            case SubAgentLink():
                self.told.append(step)
                self.links.known[step.key] = step
                record_parents(self.store, self.namespace, [step])
            case Append(block=block):
                self.report.tool_calls += step.is_server_call or block.kind == "tool_call"
                self.report.tool_results += block.kind == "tool_result"
                self._add_to_batch(step, count_characters(block))
            case ReportedCall() | RequestParameters():
                self._add_to_batch(step, 0)
            case UnknownEntry(type=kind, line=line):
                self.outcome = max(self.outcome, _UNKNOWN)
                self.report.unknown[kind] = self.report.unknown.get(kind, 0) + 1
                self.report.unknown_at.setdefault(kind, f"{self.report.path}:{line}")
            case Rewind() | SourceCompaction():
                is_compaction = isinstance(step, SourceCompaction) and not step.is_shortening
                self.report.compactions += is_compaction
                self.outcome = max(self.outcome, _IMPORTED)
                self._record_decision(step)
            case SkippedEntry(reason=reason):
                self.skip_reason = reason
            case SourceProblem(line=line, reason=reason):
                self.outcome = _ERROR
                self.report.errors.append(f"{self.report.path}:{line}: {reason}")
            case EntryEnd():
                self._end_entry(step)

    def _end_entry(self, end: EntryEnd) -> None:
        report = self.report
        if self.outcome == _SKIPPED and self.skip_reason:
            report.skipped[self.skip_reason] = report.skipped.get(self.skip_reason, 0) + 1
        elif self.outcome == _SKIPPED:
            self.outcome = _IMPORTED
        outcome = _OUTCOMES[self.outcome]
        self.outcome, self.skip_reason = _SKIPPED, None
        report.entries += 1
        report.imported += outcome == "imported"
        report.tool_results += end.answers
        report.ended[outcome] = report.ended.get(outcome, 0) + 1
        self.offset = end.offset
        if self.report_bytes:
            self.report_bytes(end.offset)

    def finish(self) -> None:
        """Finish after the whole file was read."""
        self.flush()
        self.set_titles()
        self.cancel_orphan_calls()
        known = [self.links.known[key] for key in self.targets if key in self.links.known]
        record_parents(self.store, self.namespace, [*self.told, *known])
        self.report.complete = True
        row = self._make_row()
        agents = {link.key for link in self.told}
        if row.stamp and not all(_is_stored(self.store, self.namespace, key) for key in agents):
            # If it were skipped from now on, the sub-agents would never learn their calls.
            self.links.unsettled.append(row)
            row = row._replace(stamp=None)
        self.store.events.save(imports=[row])

    def pause(self) -> None:
        """Store what was read so far of a file that may grow."""
        self.flush()
        self.set_titles()
        self._refuse_deleted()
        self.report.complete = True
        self.store.events.save(imports=[self._make_row()])

    def _refuse_deleted(self) -> None:
        """Raise NotFoundError if a session of the file was deleted since it was opened here."""
        for target in self.targets.values():
            # The position is read from the database, where another process may have deleted it.
            if target.session and not (
                target.session.position and target.session.log.id == target.session_id
            ):
                raise NotFoundError(f"session {target.begin.key!r} was deleted while it was read")

    def flush(self) -> None:
        batch, self.batch, self.batched = self.batch, [], 0
        for target, _ in batch:
            self._open_session(target)
        events = self.store.events
        segments = self.keeper.take_segments() if self.keeper else []
        while batch:
            with events.lock_streams(
                *{target.session_id for target, _ in batch if target.session_id}
            ):
                decided = ImportBatch(self.store, self.namespace, batch, self.keeper)
                try:
                    events.save(
                        *decided.sessions.values(),
                        keys=decided.keys,
                        imports=[self._make_row()],
                        segments=segments,
                    )
                except BaseException as error:
                    for session in decided.sessions.values():
                        events.evict(session.id)
                    if not isinstance(error, IntegrityError):
                        raise
                    # Another process appended to a session: decide again on what is stored.
                    for target, _ in batch:
                        target.stored_keys = None
                    continue
            decided.mark_stored()
            self.report.added += decided.added
            self.report.abandoned += decided.abandoned
            self.report.errors += [f"{self.report.path}:{error}" for error in decided.errors]
            return
        if segments:
            events.save(segments=segments)

    def _make_row(self) -> ImportRow:
        report = self.report
        session = next((t.begin.key for t in self.targets.values() if t.session), None)
        # A file with errors reports them at each import, so it is always read again.
        stamp = self.stamp if report.complete and not report.errors else None
        segments = self.keeper.digests if self.keeper else b""
        known = self.row.segments if self.row else b""
        if not report.complete and len(segments) < len(known):
            segments = known  # more of the source than this import has read by now
        return ImportRow(
            self.namespace,
            self.name,
            report.format or "",
            session,
            self.offset,
            report.complete,
            stamp,
            segments,
        )

    def _add_to_batch(self, step: BatchStep, size: int) -> None:
        self.outcome = max(self.outcome, _IMPORTED)
        if self.current is None:
            return  # a reader begins a session before its steps
        if self.batch and self.batched + size > MAX_BATCH_CHARACTERS:
            self.flush()
        self.batch.append((self.current, step))
        self.batched += size

    def _open_session(self, target: ImportTarget) -> StoredSession:
        if target.session is None:
            begin = target.begin
            parent = None
            if begin.parent_key:
                link = self.links.known.get(begin.key)
                parent = Parent(
                    namespace=self.namespace,
                    key=begin.parent_key,
                    tool_call_id=begin.parent_call or (link.parent_call if link else None),
                )
            is_new = self.store.events.load_session(self.namespace, begin.key) is None
            if is_new:
                target.stored_keys = {}  # a new session has no keys to look up
            if is_new and begin.fork_of:
                target.session = self._open_fork(target, begin.fork_of)
            else:
                target.session = self.store.session(
                    begin.key,
                    namespace=self.namespace,
                    parent=parent,
                    source=self.report.format,
                    title=target.title,
                    project=begin.project,
                )
            target.session_id = target.session.log.id
            self.report.sessions.append(begin.key)
        return target.session

    def _open_fork(self, target: ImportTarget, fork_of: str) -> StoredSession:
        """Open a branch, forked from the session that holds the last shared entry."""
        begin, origin = target.begin, self.targets[fork_of]
        while begin.fork_at not in origin.positions and origin.begin.fork_of:
            origin = self.targets[origin.begin.fork_of]
        shared = origin.positions.get(begin.fork_at or "")
        return self._open_session(origin).fork(
            begin.key,
            at=shared[1] if shared else 1,  # if they share only a beginning
            lineage=RECORDED_LINEAGE,
            source=self.report.format,
            title=target.title,
        )

    def set_titles(self) -> None:
        for target in self.targets.values():
            if target.session and target.title and target.session.info.title != target.title:
                target.session.configure(title=target.title)

    def cancel_orphan_calls(self) -> None:
        """Close calls without a result from before the source's last prompt.

        Left open, they would stay in every view forever.
        """
        for target in self.targets.values():
            if (session := target.session) is None:
                continue
            state = session.log.state
            calls = session.recall(*state.open_calls.values()) if state.open_calls else []
            for call in calls:
                if call.turn < state.turn and isinstance(call.block, ToolCall):
                    session.cancel_tool_call(call.block.tool_call_id, UNANSWERED_REASON)
                    self.report.abandoned += 1

    def _record_decision(self, step: Rewind | SourceCompaction) -> None:
        self.flush()
        target = self.current
        if target and target.begin.fork_of:
            self._open_session(target)  # a fork has content from the start
        if target is None or (session := target.session) is None:
            return
        while not self.store.events.select_key(session.log.id, step.key):
            try:
                match step:
                    case Rewind():
                        record_rewind(session, target.positions, step)
                    case SourceCompaction(is_shortening=True):
                        record_shortening(session, target.positions, step)
                    case SourceCompaction():
                        record_source_compaction(session, target.positions, step)
            except IntegrityError:
                continue  # another process wrote to the session: decide again
            return
