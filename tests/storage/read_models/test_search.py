"""Search finds everything that was ever said, whatever became of it since."""

from typing import Any

import pytest
from opened_stores import store_of
from read_model_rows import table

import cutbank
from cutbank import Block, ReserveHeadroom, SessionStore, StoredSession, ToolCall, ToolResult
from cutbank.adapters.storage.read_models import search as searching
from cutbank.adapters.storage.read_models.search import SearchHit
from cutbank.domain.blocks import BlockKind, Media, Origin, Text
from cutbank.domain.errors import InvalidSettingError, NotFoundError

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
        Block(kind=BlockKind.DOCUMENT, name="pebble.pdf"),
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

    assert sorted(one.position or 0 for one in found) == [3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 15]
    assert len({one.kind for one in found}) == 8


def test_what_left_the_view_is_found_and_summaries_by_their_boundary(
    session: StoredSession,
) -> None:
    session.append(Block.user("a hidden pebble"), Block.assistant("a retracted pebble"))
    session.append(Block.user("Never touch the obsidian. " * 9))
    session.append(*(Block.user(f"question {n} " * 60) for n in range(20)))
    session.hide(3)
    session.retract(4)
    outcome = session.compact(POLICY, limit=4_000)

    search = store_of(session).search
    found = [one for one in search("pebble") if one.kind != "summary"]
    (summary,) = [one for one in search("obsidian") if one.kind == "summary"]

    assert {one.position for one in found} == {3, 4}
    assert not {entry.position for entry in session.view().entries} & {3, 4}
    assert (summary.boundary, summary.lineage, summary.handle) == (outcome.boundary, "main", None)
    assert summary.session == session.key


def test_what_a_fork_shares_is_found_once_in_its_parent(session: StoredSession) -> None:
    session.append(Block.user("the first pebble"))
    fork = session.fork("fork")
    fork.append(Block.user("the second pebble"))
    session.append(Block.user("the third pebble"))

    for within, expected in (
        (None, [(session.key, 3), (session.key, 4), ("fork", 5)]),
        ("fork", [(session.key, 3), ("fork", 5)]),
        (session.key, [(session.key, 3), (session.key, 4)]),
    ):
        found = store_of(session).search("pebble", session=within)
        assert sorted((one.session, one.position) for one in found) == expected


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
    for number, (time, said) in enumerate(times.items()):
        origin = Origin(format="claude-code", time=time)
        session.append(Block.user(f"pebble{number}", origin=origin))

        (found,) = store_of(session).search(f"pebble{number}")

        assert found.said_at.isoformat().startswith(said), time


@pytest.mark.parametrize(
    ("text", "query"),
    [
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
        pytest.param("x" * 100_000 + " pebble", "pebble", id="long"),
        ("50% of {excerpt} : col", "excerpt : 50%"),
    ],
)
def test_odd_text_is_found(session: StoredSession, text: str, query: str) -> None:
    session.append(Block.user(text))

    assert handles(store_of(session).search(query)) == ["#3"]


def test_words_of_arguments_are_found_as_words_and_not_as_json(session: StoredSession) -> None:
    arguments: list[tuple[Any, str]] = [
        ({"text": "line\nnote\tcaf\u00e9"}, "note café"),
        ('{"text": "\\u006eewt \\ud83d\\ude00"}', "newt"),
        ("*** not JSON\nnumpy {", "numpy"),
    ]
    for number, (given, query) in enumerate(arguments):
        session.append(ToolCall(tool_call_id=f"{number}", name="write", arguments=given))

        assert handles(store_of(session).search(query)) == [f"#{number + 2}"]


def test_all_words_have_to_be_there_and_none_of_the_unwanted(session: StoredSession) -> None:
    session.append(
        Block.user("clay silt"), Block.user("silt sand"), Block.user("clay sand silt river")
    )
    for query, expected in (
        ("clay silt", {"#3", "#5"}),
        ('"clay silt"', {"#3"}),
        ("silt -clay", {"#4"}),
        ('silt -"clay sand" -sand', {"#3"}),
        ("riv*", {"#5"}),
        ("clay basalt", set()),
    ):
        assert set(handles(store_of(session).search(query))) == expected, query


def test_a_better_match_comes_first_and_of_very_many_the_newest(
    session: StoredSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.append(Block.user("silt " * 99 + "pebble"), Block.user("pebble " * 9))
    session.append(*(Block.user(f"pebble {n}") for n in range(9)))
    search = store_of(session).search
    assert handles(search("pebble", limit=20))[-1] == "#3"
    monkeypatch.setattr(searching, "MAX_RANKED", 4)
    store_of(session).session("other").append(Block.user("one pebble"))

    assert handles(search("pebble", limit=3)) == ["#3", "#13", "#12"]
    assert handles(search("pebble", limit=3, session=session.key)) == ["#13", "#12", "#11"]


def test_namespaces_are_searched_together_or_apart(store: SessionStore) -> None:
    store.session("s").append(Block.user("a pebble"))
    store.session("s", namespace="elsewhere").append(Block.user("a pebble"))

    assert len(store.search("pebble")) == 2
    assert [one.namespace for one in store.search("pebble", namespace="elsewhere")] == ["elsewhere"]
    assert len(store.search("pebble", session="s", namespace="elsewhere")) == 1
    assert store.search("sessionnumber1") == []
    with pytest.raises(NotFoundError, match="no session 'unknown'"):
        store.search("pebble", session="unknown")
    with pytest.raises(InvalidSettingError, match="nothing to search for"):
        store.search("-> !")


def test_a_compressed_log_is_searched_as_any_other(tmp_path: object) -> None:
    with cutbank.open(f"{tmp_path}/log.db", compress=True) as store:
        talk(store, "s", 6, words="pebble and clay")

        assert len(store.search("pebble", limit=100)) == 18
        (row,) = table(store.read_models, "sessions")
        # It is the size of what was said, and not of what is stored of it.
        assert row["bytes"] > 2 * 900 * len("pebble and clay")
