"""Search finds everything that was ever said, whatever became of it since."""

import pytest
from opened_stores import store_of
from read_model_rows import table

import cutbank
from cutbank import Block, SessionStore, StoredSession, ToolCall, ToolResult
from cutbank.adapters.storage.read_models import search as searching
from cutbank.adapters.storage.read_models.search import SearchHit
from cutbank.domain.blocks import Kind, Media, Origin, Text
from cutbank.domain.errors import InvalidSettingError, NotFoundError
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom

from .conftest import talk

POLICY = ReserveHeadroom(reserve_tokens=500, keep_tokens=600)


def handles(found: list[SearchHit]) -> list[str | None]:
    return [one.handle for one in found]


def test_every_kind_of_block_is_found(session: StoredSession) -> None:
    session.append(
        Block.user("a pebble from a user"),
        Block.thinking("a pebble in a thought"),
        Block.assistant("a pebble in an answer"),
        Block.developer("a pebble of the developer"),
        Block.note("a pebble in a note"),
        Block(kind=Kind.DOCUMENT, name="pebble.pdf"),
        ToolCall(tool_call_id="c1", name="find_pebble", arguments={"path": "a.py"}),
        ToolCall(tool_call_id="c2", name="bash", arguments={"command": "grep pebble"}),
        ToolResult(tool_call_id="c1", content="one pebble"),
        ToolResult(
            tool_call_id="c2",
            content=(
                Text(text="two pebbles"),
                Text(text="one pebble"),
                Media(type="image", mime="image/png", name="pebble.png"),
            ),
        ),
        ToolCall(tool_call_id="c3", name="other"),
    )
    session.cancel_tool_call("c3", "the pebble was lost")

    found = store_of(session).search("pebble", limit=50)

    assert {one.kind for one in found} == {
        "user",
        "thinking",
        "assistant",
        "developer",
        "note",
        "document",
        "tool_call",
        "tool_result",
    }
    assert sorted(one.position or 0 for one in found) == [3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 15]


def test_what_left_the_view_is_found(session: StoredSession) -> None:
    session.append(Block.user("a hidden pebble"), Block.assistant("a retracted pebble"))
    session.append(*(Block.user(f"question {n} " * 60) for n in range(20)))
    session.hide(3)
    session.retract(4)
    session.compact(POLICY, limit=4_000)

    found = store_of(session).search("pebble")

    shown = {entry.position for entry in session.view().entries}
    assert {one.position for one in found if one.kind != "summary"} == {3, 4}
    assert not shown & {3, 4}


def test_summaries_are_found_by_their_boundary(session: StoredSession) -> None:
    session.append(Block.user("Never touch the obsidian. " * 9))
    session.append(*(Block.user(f"question {n} " * 60) for n in range(20)))
    outcome = session.compact(POLICY, limit=4_000)

    summaries = [one for one in store_of(session).search("obsidian") if one.kind == "summary"]

    assert [(one.boundary, one.lineage, one.handle) for one in summaries] == [
        (outcome.boundary, "main", None)
    ]
    assert summaries[0].session == session.key


def test_what_a_fork_shares_is_found_once_in_its_parent(session: StoredSession) -> None:
    session.append(Block.user("the first pebble"))
    fork = session.fork("fork")
    fork.append(Block.user("the second pebble"))
    session.append(Block.user("the third pebble"))

    everywhere = store_of(session).search("pebble")
    in_fork = store_of(session).search("pebble", session="fork")
    in_parent = store_of(session).search("pebble", session=session.key)

    assert [(one.session, one.handle) for one in everywhere] == [
        (session.key, "#4"),
        ("fork", "#5"),
        (session.key, "#3"),
    ]
    assert sorted((one.session, one.position) for one in in_fork) == [(session.key, 3), ("fork", 5)]
    assert sorted(one.position or 0 for one in in_parent) == [3, 4]


def test_a_find_says_where_it_stands(session: StoredSession) -> None:
    session.append(Block.user("first"), Block.assistant("Look at parser.c, please."))

    (found,) = store_of(session).search("parser.c")

    assert (found.session, found.namespace) == ("a session", "default")
    assert (found.handle, found.turn, found.kind) == ("#4", 1, "assistant")
    assert found.snippet.mark_matches() == "Look at «parser.c», please."
    assert session.recall(found.position or 0)[0].block.text == "Look at parser.c, please."


def test_a_find_says_when_it_was_said_by_its_source_or_else_when_it_was_stored(
    session: StoredSession,
) -> None:
    times = {
        "2025-03-10T09:30:00.250Z": "2025-03-10T09:30:00.250000+00:00",
        "2025-03-10T09:30:00+02:00": "2025-03-10T07:30:00+00:00",
        "2025-03-10 09:30": "2025-03-10T09:30:00+00:00",
        "1741599000": "2025-03-10T09:30:00+00:00",
        "1741599000250": "2025-03-10T09:30:00.250000+00:00",
        None: "2026-",
        "": "2026-",
        "1e300": "2026-",
        "last Monday": "2026-",
    }
    for number, time in enumerate(times):
        origin = Origin(format="claude-code", time=time)
        session.append(Block.user(f"pebble{number}", origin=origin))

    found = [store_of(session).search(f"pebble{number}")[0].said_at for number in range(len(times))]

    assert [
        (at.isoformat(), said)
        for at, said in zip(found, times.values(), strict=True)
        if not at.isoformat().startswith(said)
    ] == []


def test_large_content_is_found_to_its_end(session: StoredSession) -> None:
    session.append(Block.user("silt " * 20_000 + "then a pebble, " + "clay " * 20_000))

    (found,) = store_of(session).search("pebble")

    assert "then a «pebble», clay" in found.snippet.mark_matches()
    assert len(found.snippet.text) < 200


def test_odd_text_is_found(store: SessionStore) -> None:
    texts = [
        ("half a \ud83d pebble", "pebble"),
        ("a pebble\0after a NUL", "after"),
        ("a pebble\0after a NUL", "pebble"),
        ("naïve café", "cafe"),
        ("naive cafe", "café"),
        ("STRASSE und Kies", "kies"),
        ("das Flußbett", "flußbett"),
        ("Καλημέρα κόσμε", "κόσμε"),
        ("галька в реке", "галька"),
        ('say "pebble" loud', '"pebble loud"'),
        ("a_pebble_name(x)", "pebble_name"),
        ("NEAR(a b) OR c", "NEAR OR"),
        ("x" * 100_000 + " pebble", "pebble"),
        ("50% of {excerpt} : col", "excerpt : 50%"),
    ]
    for number, (text, _) in enumerate(texts):
        store.session(f"s{number}").append(Block.user(text))

    missed = [
        query
        for number, (_, query) in enumerate(texts)
        if handles(store.search(query, session=f"s{number}")) != ["#3"]
    ]

    assert missed == []


def test_words_of_arguments_are_found_as_words_and_not_as_json(session: StoredSession) -> None:
    session.append(
        ToolCall(tool_call_id="c1", name="write", arguments={"text": "line\nnote\tcaf\u00e9"}),
        ToolCall(
            tool_call_id="c2", name="write", arguments='{"text": "\\u006eewt \\ud83d\\ude00"}'
        ),
        ToolCall(tool_call_id="c3", name="patch", arguments="*** not JSON\nnumpy {"),
    )

    assert handles(store_of(session).search("note café")) == ["#2"]
    assert handles(store_of(session).search("newt")) == ["#3"]
    assert handles(store_of(session).search("numpy")) == ["#4"]


def test_all_words_have_to_be_there_and_none_of_the_unwanted(session: StoredSession) -> None:
    session.append(
        Block.user("clay silt"), Block.user("silt sand"), Block.user("clay sand silt river")
    )
    search = store_of(session).search

    assert sorted(handles(search("clay silt"))) == ["#3", "#5"]  # type: ignore[type-var]
    assert handles(search('"clay silt"')) == ["#3"]
    assert handles(search("silt -clay")) == ["#4"]
    assert handles(search('silt -"clay sand" -sand')) == ["#3"]
    assert handles(search("riv*")) == ["#5"]
    assert search("clay basalt") == []


def test_a_better_match_comes_first(session: StoredSession) -> None:
    session.append(
        Block.user("pebble " * 9),
        Block.user("There is one pebble among a great many other words of no use. " + "silt " * 99),
    )

    assert handles(store_of(session).search("pebble")) == ["#3", "#4"]


def test_of_very_many_the_newest_come_first(
    session: StoredSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "MAX_RANKED", 4)
    session.append(Block.user("pebble " * 9), *(Block.user(f"pebble {n}") for n in range(9)))
    other = store_of(session).session("other")
    other.append(Block.user("one pebble"))

    assert handles(store_of(session).search("pebble", limit=3)) == ["#3", "#12", "#11"]
    assert handles(store_of(session).search("pebble", limit=3, session=session.key)) == [
        "#12",
        "#11",
        "#10",
    ]


def test_namespaces_are_searched_together_or_apart(store: SessionStore) -> None:
    store.session("s").append(Block.user("a pebble"))
    store.session("s", namespace="elsewhere").append(Block.user("a pebble"))

    assert len(store.search("pebble")) == 2
    assert [one.namespace for one in store.search("pebble", namespace="elsewhere")] == ["elsewhere"]
    assert len(store.search("pebble", session="s", namespace="elsewhere")) == 1
    assert store.search("sessionnumber1") == []


def test_what_is_not_there_is_said(store: SessionStore) -> None:
    store.session("s").append(Block.user("a pebble"))

    with pytest.raises(NotFoundError, match="no session 'unknown'"):
        store.search("pebble", session="unknown")
    with pytest.raises(InvalidSettingError, match="nothing to search for"):
        store.search("-> !")


def test_a_search_sees_what_was_just_said_by_anybody(store: SessionStore, database: str) -> None:
    store.session("s").append(Block.user("a pebble"))
    assert len(store.search("pebble")) == 1

    with cutbank.open(database) as another:
        another.session("t").append(Block.user("another pebble"))

    assert len(store.search("pebble")) == 2


def test_a_compressed_log_is_searched_as_any_other(tmp_path: object) -> None:
    with cutbank.open(f"{tmp_path}/log.db", compress=True) as store:
        talk(store, "s", 6, words="pebble and clay")

        assert len(store.search("pebble", limit=100)) == 18
        (row,) = table(store.read_models, "sessions")
        # It is the size of what was said, and not of what is stored of it.
        assert row["bytes"] > 2 * 900 * len("pebble and clay")
