"""Defines the tables of the read models as migrations of sqlite-utils, readable with Datasette.

A released step never changes: a file with other steps is rebuilt.
"""

from sqlite_utils import Database, Migrations
from sqlite_utils.db import Table

from ....domain.context_limit import DEFAULT_LIMIT, LimitSource

APPLICATION_ID = 0x63757472
"""`cutr`, in the file's header; only a file with this id or without any is replaced."""

migrations = Migrations("cutbank_read_models")


@migrations()
def feeds_and_settings(db: Database) -> None:
    """Create the positions of the feeds, and the settings by which rows are computed."""
    db.create_table(
        "feeds", {"name": str, "position": int, "fingerprint": str}, pk="name", strict=True
    )
    db.create_table("settings", {"name": str, "value": float}, pk="name", strict=True)


@migrations()
def sessions_and_lineages(db: Database) -> None:
    sessions = db.create_table(
        "sessions",
        {
            "id": int,
            "stream": str,
            "namespace": str,
            "key": str,
            # The label that Datasette shows for references to a session.
            "name": str,
            "title": str,
            "source": str,
            "subject": str,
            "parent_id": int,
            "parent_namespace": str,
            "parent_key": str,
            "parent_call": str,
            "forked_from_id": int,
            "forked_at": int,
            "opened_at": str,
            "last_activity": str,
            "position": int,
            "turns": int,
            "blocks": int,
            "bytes": int,
            "tokens": int,
            "view_tokens": int,
            "system_tokens": int,
            "tools_tokens": int,
            "utilisation": float,
            "open_calls": int,
            "closed": int,
            "served_lineage": str,
            "served_version": int,
            "steady_from": int,
            "due_at": str,
        },
        pk="id",
        foreign_keys=[("parent_id", "sessions", "id"), ("forked_from_id", "sessions", "id")],
        strict=True,
    )
    sessions.create_index(["stream"], unique=True)
    sessions.create_index(["namespace", "key"], unique=True)
    sessions.create_index(["parent_id"])
    sessions.create_index(["forked_from_id"])
    sessions.create_index(["last_activity"])
    sessions.create_index(["parent_namespace", "parent_key"])
    # sqlite-utils has no partial indexes; most sessions of a long log are never due again.
    db.execute("CREATE INDEX idx_sessions_due_at ON sessions (due_at) WHERE due_at IS NOT NULL")
    lineages = db.create_table(
        "lineages",
        {
            "id": int,
            "stream": str,
            "session_id": int,
            "name": str,
            "base_id": int,
            "base_version": int,
            "version": int,
            "boundary": int,
            "opened_at": str,
        },
        pk="id",
        foreign_keys=[("session_id", "sessions", "id"), ("base_id", "lineages", "id")],
        strict=True,
    )
    lineages.create_index(["stream"], unique=True)
    lineages.create_index(["session_id", "name"], unique=True)
    lineages.create_index(["base_id"])


@migrations()
def compactions(db: Database) -> None:
    requests = db.create_table(
        "compaction_requests",
        {
            "id": int,
            "lineage_id": int,
            "version": int,
            "trigger": str,
            "policy": str,
            "settings": str,
            "after": int,
            "instructions": str,
            "idempotency_key": str,
            "requested_at": str,
        },
        pk="id",
        foreign_keys=[("lineage_id", "lineages", "id")],
        strict=True,
    )
    requests.create_index(["lineage_id", "version"], unique=True)
    ledger = db.create_table(
        "compactions",
        {
            "id": int,
            "session_id": int,
            "lineage_id": int,
            "request_id": int,
            "version": int,
            "outcome": str,
            "boundary": int,
            "trigger": str,
            "policy": str,
            "after": int,
            "first_kept": int,
            "pre_tokens": int,
            "post_tokens": int,
            "kept_positions": int,
            "kept": str,
            "pinned": str,
            "hidden": str,
            "trims": int,
            "repairs": str,
            "split_turn": int,
            "previous": int,
            "summariser": str,
            "model": str,
            "input_tokens": int,
            "output_tokens": int,
            "cost_usd": float,
            "summary_tokens": int,
            "covers": str,
            "cites": str,
            "reason": str,
            "rule": str,
            "tried": str,
            "stood_in": str,
            "effective_from": int,
            "activated_at": str,
            "reverted_at": str,
            "recorded_at": str,
        },
        pk="id",
        foreign_keys=[
            ("session_id", "sessions", "id"),
            ("lineage_id", "lineages", "id"),
            ("request_id", "compaction_requests", "id"),
        ],
        strict=True,
    )
    ledger.create_index(["lineage_id", "version"], unique=True)
    ledger.create_index(["session_id"])
    ledger.create_index(["request_id"])


@migrations()
def calls_and_digest(db: Database) -> None:
    calls = db.create_table(
        "model_calls",
        {
            "id": int,
            "session_id": int,
            "position": int,
            "call_id": str,
            "repeated": int,
            "model": str,
            "lineage": str,
            "lineage_version": int,
            "view_position": int,
            "renderer": str,
            "fingerprint": str,
            "view_tokens": int,
            "prompt_tokens": int,
            "cached_tokens": int,
            "cache_write_tokens": int,
            "output_tokens": int,
            "reasoning_tokens": int,
            "utilisation": float,
            "level": str,
            "cost_usd": float,
            "latency_s": float,
            "stop_reason": str,
            "called_at": str,
        },
        pk="id",
        foreign_keys=[("session_id", "sessions", "id")],
        strict=True,
    )
    calls.create_index(["session_id", "call_id"])
    overflows = db.create_table(
        "context_overflows",
        {
            "id": int,
            "session_id": int,
            "position": int,
            "model": str,
            "message": str,
            "recorded_at": str,
        },
        pk="id",
        foreign_keys=[("session_id", "sessions", "id")],
        strict=True,
    )
    overflows.create_index(["session_id"])
    entries = db.create_table(
        "digest_entries",
        {
            "id": int,
            "session_id": int,
            "position": int,
            "turn": int,
            "kind": str,
            "what": str,
            "tool": str,
            "outcome": str,
            "retracted": int,
        },
        pk="id",
        foreign_keys=[("session_id", "sessions", "id")],
        strict=True,
    )
    entries.create_index(["session_id", "position"])


@migrations()
def blocks_and_their_words(db: Database) -> None:
    """Create the blocks, with an excerpt of each; the index holds the whole text."""
    blocks = db.create_table(
        "blocks",
        {
            "id": int,
            "session_id": int,
            "position": int,
            "turn": int,
            "kind": str,
            "name": str,
            "lineage_id": int,
            "boundary": int,
            "tokens": int,
            "said_at": str,
            "excerpt": str,
        },
        pk="id",
        foreign_keys=[("session_id", "sessions", "id"), ("lineage_id", "lineages", "id")],
        strict=True,
    )
    blocks.create_index(["session_id", "position"])
    # Not `enable_fts`: the index gets the whole text of a block, which the table does not store.
    db.execute(
        "CREATE VIRTUAL TABLE blocks_fts USING fts5("
        "excerpt, session_id, content='blocks', content_rowid='id', tokenize='unicode61')"
    )
    # Larger segments, merged later, as the index is written in batches.
    db.execute("INSERT INTO blocks_fts (blocks_fts, rank) VALUES ('hashsize', 16777216)")
    db.execute("INSERT INTO blocks_fts (blocks_fts, rank) VALUES ('automerge', 16)")


@migrations()
def views_for_people(db: Database) -> None:
    db.create_view(
        "sessions_with_compactions",
        """
        SELECT sessions.id, sessions.namespace, sessions.key, sessions.title, sessions.blocks,
            sessions.tokens, sessions.view_tokens, sessions.utilisation,
            count(compactions.id) AS boundaries,
            count(compactions.activated_at) AS activated,
            count(compactions.reverted_at) AS reverted,
            sum(compactions.pre_tokens - compactions.post_tokens) AS tokens_saved,
            max(compactions.recorded_at) AS last_compaction
        FROM sessions
        LEFT JOIN compactions
            ON compactions.session_id = sessions.id AND compactions.outcome = 'boundary'
        GROUP BY sessions.id
        """,
    )
    db.create_view(
        "due_sessions",
        """
        SELECT id, namespace, key, title, due_at, last_activity, view_tokens, utilisation
        FROM sessions WHERE due_at IS NOT NULL ORDER BY due_at
        """,
    )
    db.create_view(
        "files_touched",
        """
        SELECT sessions.namespace, sessions.key AS session, digest_entries.what AS path,
            sum(digest_entries.kind = 'read') AS times_read,
            sum(digest_entries.kind = 'modified') AS times_modified,
            max(digest_entries.position) AS last_position
        FROM digest_entries JOIN sessions ON sessions.id = digest_entries.session_id
        WHERE digest_entries.kind IN ('read', 'modified')
            AND digest_entries.outcome IS NOT 'error' AND NOT digest_entries.retracted
        GROUP BY sessions.id, digest_entries.what
        """,
    )
    db.create_view(
        "costs",
        """
        SELECT sessions.namespace, sessions.key AS session, model_calls.model,
            count(*) AS calls, sum(model_calls.prompt_tokens) AS prompt_tokens,
            sum(model_calls.cached_tokens) AS cached_tokens,
            sum(model_calls.output_tokens) AS output_tokens,
            sum(model_calls.cost_usd) AS cost_usd
        FROM model_calls JOIN sessions ON sessions.id = model_calls.session_id
        WHERE NOT model_calls.repeated
        GROUP BY sessions.id, model_calls.model
        """,
    )


@migrations()
def rest_and_leases(db: Database) -> None:
    """Add the columns for idle compaction: leases, failures, costs, waiting times."""
    sessions = db.table("sessions")
    for name, kind in (("wake_at", str), ("leased_until", str), ("failed_at", str)):
        sessions.add_column(name, kind)
    sessions.add_column("reported", int)
    for name in ("in_use", "settled", "attempts"):
        sessions.add_column(name, int, not_null_default=0)
    db.execute(
        "CREATE INDEX idx_sessions_namespace_due_at ON sessions (namespace, due_at)"
        " WHERE due_at IS NOT NULL"
    )
    requests = db.table("compaction_requests")
    for name in ("worker", "leased_until", "ended_at", "outcome"):
        requests.add_column(name, str)
    db.execute(
        "CREATE INDEX idx_compaction_requests_open ON compaction_requests (lineage_id)"
        " WHERE ended_at IS NULL"
    )
    db.table("compactions").add_column("latency_s", float)
    db.table("compactions").create_index(["recorded_at"])
    db.table("lineages").add_column("prepared", int)
    db.execute("CREATE INDEX idx_lineages_prepared ON lineages (id) WHERE prepared IS NOT NULL")


@migrations()
def dropped_boundaries(db: Database) -> None:
    """Add when a prepared boundary was given up; `reason` says why."""
    db.table("compactions").add_column("dropped_at", str)


@migrations()
def traces(db: Database) -> None:
    """Create the columns of numbers for replays, filled on demand."""
    db.create_table(
        "traces",
        {
            "stream": str,
            "position": int,
            # The digest of the event at that position, to detect a restored log.
            "digest": bytes,
            "format": str,
            "columns": bytes,
        },
        pk="stream",
        strict=True,
    )


@migrations()
def counted_calls(db: Database) -> None:
    """Create the positions of the calls of long sessions, filled on demand."""
    db.create_table(
        "counted_calls",
        {
            "stream": str,
            "position": int,
            # As in `traces`.
            "digest": bytes,
            "format": str,
            "calls": bytes,
            "joins": bytes,
        },
        pk="stream",
        strict=True,
    )


@migrations()
def context_limits(db: Database) -> None:
    """Add the context limits of sessions, and the sources of limits and compaction sizes."""
    sessions = db.table("sessions")
    sessions.add_column("has_calls", int, not_null_default=0)
    sessions.add_column("context_limit", int, not_null_default=DEFAULT_LIMIT)
    sessions.add_column("limit_source", str, not_null_default=LimitSource.DEFAULT.value)
    # For `pre_tokens` and `post_tokens`: reported or estimated.
    db.table("compactions").add_column("tokens_basis", str)


@migrations()
def prices_and_projects(db: Database) -> None:
    """Add list prices of calls, copies, and columns for the list of sessions."""
    sessions = db.table("sessions")
    for name in ("project", "first_prompt", "model", "said_at"):
        sessions.add_column(name, str)
    calls = db.table("model_calls")
    for name in ("input_tokens", "cache_write_1h_tokens", "copy_of"):
        calls.add_column(name, int)
    for name in ("input_usd", "cached_usd", "cache_write_usd", "output_usd"):
        calls.add_column(name, float)
    calls.create_index(["call_id"])
    db.execute("DROP VIEW costs")
    db.create_view(
        "costs",
        """
        SELECT sessions.namespace, sessions.key AS session, sessions.project, model_calls.model,
            count(*) AS calls, sum(model_calls.input_tokens) AS input_tokens,
            sum(model_calls.cached_tokens) AS cached_tokens,
            sum(model_calls.cache_write_tokens) AS cache_write_tokens,
            sum(model_calls.output_tokens) AS output_tokens,
            sum(coalesce(nullif(model_calls.cost_usd, 0), model_calls.input_usd
                + model_calls.cached_usd + model_calls.cache_write_usd + model_calls.output_usd))
                AS cost_usd
        FROM model_calls JOIN sessions ON sessions.id = model_calls.session_id
        WHERE NOT model_calls.repeated AND model_calls.copy_of IS NULL
        GROUP BY sessions.id, model_calls.model
        """,
    )


def is_current(db: Database) -> bool:
    """Return whether the file has exactly these steps."""
    applied = [step.name for step in migrations.applied(db)]
    return applied == MIGRATION_NAMES


MIGRATION_NAMES = [
    step.__name__
    for step in (
        feeds_and_settings,
        sessions_and_lineages,
        compactions,
        calls_and_digest,
        blocks_and_their_words,
        views_for_people,
        rest_and_leases,
        dropped_boundaries,
        traces,
        counted_calls,
        context_limits,
        prices_and_projects,
    )
]


def create_tables(db: Database) -> None:
    """Create every table and view, in the open transaction."""
    migrations.apply(db)
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def drop_tables(db: Database) -> None:
    """Drop everything, in the open transaction."""
    db.execute("PRAGMA defer_foreign_keys = ON")
    for view in db.view_names():
        db.execute(f"DROP VIEW [{view}]")
    names = db.table_names()
    # A virtual table drops its shadow tables, which cannot be dropped before it.
    tables = [db.table(name) for name in names]
    for table in sorted(tables, key=_is_ordinary):
        db.execute(f"DROP TABLE IF EXISTS [{table.name}]")


def _is_ordinary(table: Table) -> bool:
    return table.virtual_table_using is None
