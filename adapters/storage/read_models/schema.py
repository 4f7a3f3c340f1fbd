"""Defines the tables of the read models, which any SQLite tool can read."""

from sqlite_utils import Database

from ....domain.context_limit import DEFAULT_LIMIT, LimitSource
from ..databases.sqlite_schema import run_script

APPLICATION_ID = 0x63757472
"""`cutr`, in the file's header; only a file with this id or without any is replaced."""
FORMAT = 18
"""The version of the tables; a file of another version is rebuilt."""

# Not in the header: older versions, which do not know the table, drop it with all others.
_TABLES = f"""
CREATE TABLE format (version INTEGER NOT NULL) STRICT;
INSERT INTO format VALUES ({FORMAT});

CREATE TABLE feeds (name TEXT PRIMARY KEY, position INTEGER, fingerprint TEXT) STRICT;

CREATE TABLE sessions (
    id INTEGER PRIMARY KEY, stream TEXT, namespace TEXT, key TEXT,
    name TEXT, -- the label that Datasette shows for references to a session
    title TEXT, source TEXT, subject TEXT,
    parent_id INTEGER REFERENCES sessions (id),
    parent_namespace TEXT, parent_key TEXT, parent_call TEXT,
    forked_from_id INTEGER REFERENCES sessions (id), forked_at INTEGER,
    opened_at TEXT, last_activity TEXT,
    position INTEGER, turns INTEGER, blocks INTEGER, bytes INTEGER, tokens INTEGER,
    view_tokens INTEGER, system_tokens INTEGER, tools_tokens INTEGER, utilisation REAL,
    open_calls INTEGER, closed INTEGER,
    served_lineage TEXT, served_version INTEGER,
    reported INTEGER, in_use INTEGER NOT NULL DEFAULT 0,
    has_calls INTEGER NOT NULL DEFAULT 0,
    context_limit INTEGER NOT NULL DEFAULT {DEFAULT_LIMIT},
    limit_source TEXT NOT NULL DEFAULT '{LimitSource.DEFAULT.value}',
    wake_at TEXT, leased_until TEXT, settled INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0, failed_at TEXT,
    project TEXT, first_prompt TEXT, model TEXT, said_at TEXT
) STRICT;
CREATE UNIQUE INDEX idx_sessions_stream ON sessions (stream);
CREATE UNIQUE INDEX idx_sessions_namespace_key ON sessions (namespace, key);
CREATE INDEX idx_sessions_parent_id ON sessions (parent_id);
CREATE INDEX idx_sessions_forked_from_id ON sessions (forked_from_id);
CREATE INDEX idx_sessions_last_activity ON sessions (last_activity);
CREATE INDEX idx_sessions_parent_namespace_parent_key ON sessions (parent_namespace, parent_key);
-- Partial, as most sessions of a long log are never due for idle work again.
CREATE INDEX idx_sessions_undecided ON sessions (utilisation, in_use)
    WHERE settled = 0 AND open_calls = 0 AND closed = 0 AND parent_key IS NULL;

CREATE TABLE lineages (
    id INTEGER PRIMARY KEY, stream TEXT, session_id INTEGER REFERENCES sessions (id), name TEXT,
    base_id INTEGER REFERENCES lineages (id), base_version INTEGER,
    version INTEGER, boundary INTEGER, prepared INTEGER, opened_at TEXT
) STRICT;
CREATE UNIQUE INDEX idx_lineages_stream ON lineages (stream);
CREATE UNIQUE INDEX idx_lineages_session_id_name ON lineages (session_id, name);
CREATE INDEX idx_lineages_base_id ON lineages (base_id);
CREATE INDEX idx_lineages_prepared ON lineages (id) WHERE prepared IS NOT NULL;

CREATE TABLE compaction_requests (
    id INTEGER PRIMARY KEY, lineage_id INTEGER REFERENCES lineages (id), version INTEGER,
    trigger TEXT, policy TEXT, settings TEXT, after INTEGER, instructions TEXT,
    idempotency_key TEXT, worker TEXT, leased_until TEXT,
    requested_at TEXT, ended_at TEXT, outcome TEXT
) STRICT;
CREATE UNIQUE INDEX idx_compaction_requests_lineage_id_version
    ON compaction_requests (lineage_id, version);
CREATE INDEX idx_compaction_requests_open ON compaction_requests (lineage_id)
    WHERE ended_at IS NULL;

CREATE TABLE compactions (
    id INTEGER PRIMARY KEY,
    session_id INTEGER REFERENCES sessions (id),
    lineage_id INTEGER REFERENCES lineages (id),
    request_id INTEGER REFERENCES compaction_requests (id),
    version INTEGER, outcome TEXT, boundary INTEGER, trigger TEXT, policy TEXT,
    after INTEGER, pre_tokens INTEGER, post_tokens INTEGER,
    tokens_basis TEXT, -- of both: reported or estimated
    kept_positions INTEGER, previous INTEGER, summariser TEXT, model TEXT,
    input_tokens INTEGER, cached_tokens INTEGER, cache_write_tokens INTEGER,
    cache_write_1h_tokens INTEGER, output_tokens INTEGER, cost_usd REAL, latency_s REAL,
    summary_tokens INTEGER, reason TEXT, rule TEXT, tried TEXT,
    stood_in TEXT, effective_from INTEGER,
    activated_at TEXT, reverted_at TEXT, dropped_at TEXT, recorded_at TEXT
) STRICT;
CREATE UNIQUE INDEX idx_compactions_lineage_id_version ON compactions (lineage_id, version);
CREATE INDEX idx_compactions_session_id ON compactions (session_id);
CREATE INDEX idx_compactions_request_id ON compactions (request_id);
CREATE INDEX idx_compactions_recorded_at ON compactions (recorded_at);

CREATE TABLE model_calls (
    id INTEGER PRIMARY KEY, session_id INTEGER REFERENCES sessions (id), position INTEGER,
    call_id TEXT, repeated INTEGER, copy_of INTEGER, model TEXT,
    lineage TEXT, lineage_version INTEGER, view_position INTEGER, renderer TEXT, fingerprint TEXT,
    prompt_tokens INTEGER, input_tokens INTEGER, cached_tokens INTEGER,
    cache_write_tokens INTEGER, cache_write_1h_tokens INTEGER, output_tokens INTEGER,
    reasoning_tokens INTEGER, utilisation REAL, level TEXT,
    cost_usd REAL, input_usd REAL, cached_usd REAL, cache_write_usd REAL, output_usd REAL,
    latency_s REAL, stop_reason TEXT, called_at TEXT
) STRICT;
CREATE INDEX idx_model_calls_session_id_call_id ON model_calls (session_id, call_id);
CREATE INDEX idx_model_calls_call_id ON model_calls (call_id);

-- The beginnings of deleted sessions that forks share, and the fork that has the blocks.
CREATE TABLE inherited (
    stream TEXT PRIMARY KEY, number INTEGER, session_id INTEGER REFERENCES sessions (id),
    last INTEGER
) STRICT;
CREATE INDEX idx_inherited_session_id ON inherited (session_id);

-- An excerpt of each block; the index holds the whole text.
CREATE TABLE blocks (
    id INTEGER PRIMARY KEY, session_id INTEGER REFERENCES sessions (id), position INTEGER,
    turn INTEGER, kind TEXT, name TEXT, lineage_id INTEGER REFERENCES lineages (id),
    boundary INTEGER, tokens INTEGER, said_at TEXT, excerpt TEXT
) STRICT;
CREATE INDEX idx_blocks_session_id_position ON blocks (session_id, position);
CREATE VIRTUAL TABLE blocks_fts USING fts5 (
    excerpt, session_id, content='blocks', content_rowid='id', tokenize='unicode61'
);
-- Larger segments, merged later, as the index is written in batches.
INSERT INTO blocks_fts (blocks_fts, rank) VALUES ('hashsize', 16777216);
INSERT INTO blocks_fts (blocks_fts, rank) VALUES ('automerge', 16);

CREATE VIEW sessions_with_compactions AS
SELECT sessions.id, sessions.namespace, sessions.key, sessions.title, sessions.blocks,
    sessions.tokens, sessions.view_tokens, sessions.utilisation,
    count(compactions.id) AS boundaries,
    count(compactions.activated_at) AS activated,
    count(compactions.reverted_at) AS reverted,
    sum(compactions.pre_tokens - compactions.post_tokens) AS tokens_saved,
    max(compactions.recorded_at) AS last_compaction
FROM sessions LEFT JOIN compactions
    ON compactions.session_id = sessions.id AND compactions.outcome = 'boundary'
GROUP BY sessions.id;
CREATE VIEW costs AS
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
GROUP BY sessions.id, model_calls.model;
"""  # noqa: S608 - our names


def is_current(db: Database) -> bool:
    table = db.table("format")
    return table.exists() and [row["version"] for row in table.rows] == [FORMAT]


def create_tables(db: Database) -> None:
    """Create every table and view, in the open transaction."""
    run_script(db.conn, _TABLES)
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def drop_tables(db: Database) -> None:
    """Drop everything, in the open transaction."""
    db.execute("PRAGMA defer_foreign_keys = ON")
    for view in db.views:
        view.drop()
    # A virtual table drops its shadow tables, which cannot be dropped before it.
    for table in sorted(db.tables, key=lambda table: table.virtual_table_using is None):
        table.drop(ignore=True)
