"""What prompts took before and after a compaction: one figure for every verb, and its source."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from claude_code_talk import Talk

import cutbank
from cutbank import Block, IdleRules, ReserveHeadroom, StoredSession, Usage, diff
from cutbank.adapters.analysis.audit import read_lineage_trees
from cutbank.adapters.interfaces.commands.audit import story_to_json
from cutbank.adapters.interfaces.commands.lineage import diff_to_json, lineage_to_json
from cutbank.adapters.storage.read_models.index_queries import list_sessions
from cutbank.domain.compaction import RECORDED_LINEAGE
from cutbank.domain.context_limit import LimitSource

Sizes = tuple[int, int, str]


def sizes_everywhere(session: StoredSession, lineage: str = RECORDED_LINEAGE) -> list[Sizes]:
    """The sizes of a lineage's compactions, which are the same wherever they are told."""
    (tree,) = read_lineage_trees(session, [lineage])
    nodes = lineage_to_json(tree)["boundaries"]
    found = [_sizes(one) for one in nodes]
    audit = cutbank.audit(session, lineage=lineage)
    told = story_to_json(audit, audit.read_between())
    assert [_sizes(one) for one in told if "pre_tokens" in one] == found
    for node in nodes:
        if node["served_from"] is not None:
            both = diff_to_json(diff(session, node["boundary"], lineage=lineage), (None, None))
            sizes = both["before"]["tokens"], both["after"]["tokens"], both["tokens_basis"]
            assert sizes == _sizes(node)
    session.log.context.read_models.catch_up(search=False)
    rows = session.log.context.read_models.file.fetch_rows(
        "SELECT pre_tokens, post_tokens, tokens_basis FROM compactions"
        " JOIN sessions ON sessions.id = compactions.session_id"
        " JOIN lineages ON lineages.id = compactions.lineage_id"
        " WHERE sessions.key = ? AND lineages.name = ? AND outcome = 'boundary'"
        " ORDER BY compactions.version",
        (session.key, lineage),
    )
    assert rows == found
    return found


def _sizes(one: dict[str, Any]) -> Sizes:
    return one["pre_tokens"], one["post_tokens"], one["tokens_basis"]


def check_use(session: StoredSession) -> None:
    """The meter and the list of sessions tell the same of the context that is in use."""
    models = session.log.context.read_models
    models.catch_up(search=False)
    now = session.log.events.clock()
    listed = list_sessions(models, None, now, IdleRules())
    (row,) = [one for one in listed if one.session == session.key]
    meter = cutbank.measure_context(session)
    assert (row.in_use, row.limit) == (meter.in_use.tokens, meter.limit.tokens)
    assert row.limit_source == meter.limit.source
    assert row.utilisation == round(meter.in_use.share, 4)


@contextmanager
def imported(talk: Talk, path: Path) -> Iterator[StoredSession]:
    path.write_bytes(talk.raw())
    with cutbank.open(":memory:") as store:
        cutbank.import_transcripts(store, path)
        (session,) = store.sessions()
        yield session


def says(talk: Talk, message: str, prompt: int) -> None:
    usage = {"input_tokens": 3, "cache_read_input_tokens": prompt - 3, "output_tokens": 40}
    content = [{"type": "text", "text": f"{message} says something"}]
    body = {"id": message, "role": "assistant", "model": "claude-opus-4-6", "content": content}
    talk.add("assistant", message=body | {"usage": usage})


def test_a_compaction_of_claude_code_takes_what_the_calls_around_it_report(tmp_path: Path) -> None:
    talk = Talk()
    talk.user("begin")
    says(talk, "m1", 150_000)
    says(talk, "m2", 166_548)
    talk.boundary(preTokens=167_174, postTokens=3_393)
    talk.summary()
    says(talk, "m3", 51_732)
    says(talk, "m4", 60_000)
    talk.boundary(preTokens=61_000, postTokens=2_000)
    talk.summary("what was said since")

    with imported(talk, tmp_path / "talk.jsonl") as session:
        first, second = sizes_everywhere(session)
        check_use(session)

        # Its window is no million: at less than a fifth of that it was full.
        assert cutbank.find_context_limit(session) == (200_000, LimitSource.LOG)
        assert first == (166_548, 51_732, "reported")
        # No call came after: both are estimates, of whole prompts, and what is in use by now.
        assert second[2] == "estimated"
        assert 60_000 <= second[0] < 60_500
        assert second[1] == cutbank.measure_context(session).in_use.tokens

        session.append(Block.user("Go on."), Block.assistant("words " * 20_000))
        session.append(Block.user("What else? " * 20))
        session.compact(ReserveHeadroom(keep_tokens=10))
        assert cutbank.find_context_limit(session) == (200_000, LimitSource.LOG)


def test_a_compaction_that_nothing_is_reported_of_is_the_view_s_own_estimate() -> None:
    with cutbank.open(":memory:") as store:
        session = store.session("s")
        for number in range(40):
            session.append(Block.user(f"{number}: " + "words " * 300), Block.assistant("yes"))
        outcome = session.compact(limit=20_000)

        found = sizes_everywhere(session, "main")

        assert found == [(outcome.pre_tokens, outcome.post_tokens, "estimated")]
        assert outcome.post_tokens == cutbank.measure_context(session, limit=20_000).in_use.tokens
        check_use(session)


def test_what_came_between_the_calls_is_reported_after_a_compaction_and_not_before() -> None:
    with cutbank.open(":memory:") as store:
        session = store.session("s")
        for number in range(10):
            session.append(Block.user(f"{number}: " + "words " * 300), Block.assistant("yes"))
        before = session.view()
        session.record_call(before, call_id="a", usage=Usage(input=before.tokens))
        session.append(Block.user("words " * 3_000))
        outcome = session.compact(ReserveHeadroom(keep_tokens=5_000), limit=20_000)
        after = session.view()
        session.record_call(after, call_id="b", usage=Usage(input=after.tokens))

        assert sizes_everywhere(session, "main") == [(before.tokens, after.tokens, "reported")]
        assert before.tokens < after.tokens
        assert outcome.pre_tokens > outcome.post_tokens
