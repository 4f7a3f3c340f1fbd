"""Defines the SQL queries for the status of idle work; `:namespaces` is a JSON list."""

RUNNING_QUERY = """
    SELECT sessions.key, sessions.namespace, lineages.name, worker, requested_at,
        compaction_requests.leased_until
    FROM compaction_requests
    JOIN lineages ON lineages.id = lineage_id
    JOIN sessions ON sessions.id = lineages.session_id
    WHERE ended_at IS NULL AND compaction_requests.leased_until > :now
        AND (:namespaces IS NULL
            OR sessions.namespace IN (SELECT value FROM json_each(:namespaces)))
    ORDER BY requested_at
"""
PREPARED_QUERY = """
    SELECT sessions.key, sessions.namespace, lineages.name, prepared, pre_tokens, post_tokens,
        recorded_at, count(*) OVER ()
    FROM lineages
    JOIN sessions ON sessions.id = lineages.session_id
    JOIN compactions ON lineage_id = lineages.id AND compactions.version = prepared
    WHERE prepared IS NOT NULL
        AND (:namespaces IS NULL
            OR sessions.namespace IN (SELECT value FROM json_each(:namespaces)))
    ORDER BY recorded_at DESC LIMIT :last
"""
DONE_QUERY = """
    SELECT sessions.key, sessions.namespace, worker, compactions.boundary, pre_tokens, post_tokens,
        summariser, cost_usd, requested_at, recorded_at
    FROM compactions
    JOIN sessions ON sessions.id = session_id
    JOIN compaction_requests ON compaction_requests.id = request_id
    WHERE compactions.outcome = 'boundary' AND worker IS NOT NULL
        AND (:namespaces IS NULL
            OR sessions.namespace IN (SELECT value FROM json_each(:namespaces)))
    ORDER BY recorded_at DESC LIMIT :last
"""
DONE_COUNT_QUERY = """
    SELECT count(*), coalesce(sum(ended_at > :day_ago), 0)
    FROM compaction_requests
    JOIN lineages ON lineages.id = lineage_id
    JOIN sessions ON sessions.id = lineages.session_id
    WHERE outcome = 'boundary' AND worker IS NOT NULL
        AND (:namespaces IS NULL
            OR sessions.namespace IN (SELECT value FROM json_each(:namespaces)))
"""
FAILED_QUERY = """
    SELECT sessions.key, sessions.namespace, worker, reason, recorded_at, sessions.attempts,
        due_at, failed_at
    FROM compactions
    JOIN sessions ON sessions.id = session_id
    LEFT JOIN compaction_requests ON compaction_requests.id = request_id
    WHERE compactions.outcome = 'failed' AND stood_in IS NULL AND rule IS NULL
        AND (request_id IS NULL OR worker IS NOT NULL)
        AND (:namespaces IS NULL
            OR sessions.namespace IN (SELECT value FROM json_each(:namespaces)))
    ORDER BY recorded_at DESC LIMIT :last
"""
FAILING_COUNT_QUERY = """
    SELECT count(*), coalesce(sum(attempts >= :attempts), 0)
    FROM sessions WHERE attempts > 0
        AND (:namespaces IS NULL
            OR sessions.namespace IN (SELECT value FROM json_each(:namespaces)))
"""
SPENT_QUERY = """
    SELECT coalesce(sum(compactions.cost_usd), 0)
    FROM compactions
    JOIN sessions ON sessions.id = session_id
    JOIN compaction_requests ON compaction_requests.id = request_id
    WHERE compactions.cost_usd > 0 AND worker IS NOT NULL
        AND (:namespaces IS NULL
            OR sessions.namespace IN (SELECT value FROM json_each(:namespaces)))
"""
