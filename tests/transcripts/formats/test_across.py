"""Whatever format a session goes out in, what was said in it comes back the same."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import cache
from itertools import product
from pathlib import Path
from urllib.parse import quote

import pytest
from codex_written import CutAt
from heard import Heard, heard
from opened_stores import store_of
from told_elsewhere import PNG, talk
from transcripts import SAMPLES, import_path, name_of, real, samples

import cutbank
from cutbank import Block, CompactionOptions, SessionStore, StoredSession, ToolCall, ToolResult
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.runtime.exporter import export, make_outgoing
from cutbank.adapters.transcripts.formats.catalog import FORMATS, recognize_format
from cutbank.adapters.transcripts.formats.outgoing import OutgoingCall
from cutbank.adapters.transcripts.formats.source import TranscriptSource
from cutbank.domain.blocks import AnyBlock, BlockKind, Media, Native, NativePart, Origin
from cutbank.domain.ranges import Ranges
from cutbank.domain.session_events import Usage
from cutbank.projections.rendering import summary_message

WRITTEN = [name for name, one in FORMATS.items() if one.write]
KEPT = json.loads(Path(__file__).with_name("kept.json").read_text("utf-8"))
"""What each format keeps of `talk`, and what it cannot hold of `odd`."""
OTHERS = Native(provider="somebody", item="{}")
PDF = Media(type="document", mime="application/pdf", data=b"%PDF", name="plan.pdf")
TIFF = Media(type="image", mime="image/tiff", data=b"II*")
LINKED = Media(type="image", mime="image/png", url="https://example.org/a.png")

ImportedSource = Callable[[Path], list[StoredSession]]


@pytest.fixture(scope="module")
def imported() -> Iterator[ImportedSource]:
    """Import each transcript once, for all the formats that it goes out in."""
    with ExitStack() as opened:

        @cache
        def imported(path: Path) -> list[StoredSession]:
            return import_sessions(opened.enter_context(cutbank.open(":memory:")), path)

        yield imported


@pytest.fixture
def store() -> Iterator[SessionStore]:
    with cutbank.open(":memory:") as store:
        yield store


def import_sessions(
    store: SessionStore, path: Path, namespace: str = "default"
) -> list[StoredSession]:
    """Import a transcript; return its sessions without the branches that forked off them."""
    (report,) = import_path(store, path, namespace=namespace)
    assert report.format, report.errors
    stored = [store.session(key, namespace=namespace, create=False) for key in report.sessions]
    return [one for one in stored if one.info.forked_from is None]


def exported(
    session: StoredSession, to: str, folder: Path, *, view: bool = False
) -> tuple[Path, dict[str, int]]:
    """Export the session; return where it lies and what was lost."""
    target = folder / f"{quote(session.key, safe='')[:80]}-{view}{FORMATS[to].suffix}"
    return target, export(session, to, target, view=view).lost


def read_files(path: Path) -> dict[str, bytes]:
    files = path.rglob("*") if path.is_dir() else [path]
    return {str(file.relative_to(path)): file.read_bytes() for file in files if file.is_file()}


def there_and_back(
    session: StoredSession, to: str, folder: Path, *, view: bool = False
) -> tuple[StoredSession, Heard, Heard, dict[str, int]]:
    """Export a session and import it; return it, and what is heard of both."""
    target, lost = exported(session, to, folder, view=view)
    back, *_ = import_sessions(store_of(session), target, namespace=f"{to}-{view}-{session.key}")
    before, after = make_outgoing(session, view=view), make_outgoing(back)
    return back, heard(before.read_parts()), heard(after.read_parts()), lost


def compare(before: Heard, after: Heard, lost: dict[str, int]) -> None:
    """Check that the same was heard, but for what was reported as lost."""
    missing = " ".join(lost)
    assert after.calls == before.calls or "calls" in missing
    assert after.results == before.results or "tool results" in missing
    assert after.summaries == before.summaries or "summar" in missing or "compactions" in missing
    for speaker in ("user", "assistant", "developer"):
        said, came = (one.texts.get(speaker, "") for one in (before, after))
        for words in before.documents if "documents" in missing and came != said else ():
            came = " ".join(came.replace(words, " ", 1).split())
        assert came == said or speaker in missing or "became the user's" in missing
    assert after.order == before.order or "became the user's" in missing


def check_export(sessions: list[StoredSession], to: str, folder: Path) -> None:
    for session in sessions:
        if session.view().entries:  # a session in which nothing was said is no transcript
            for view in (False, True):
                _, before, after, lost = there_and_back(session, to, folder, view=view)
                compare(before, after, lost)


@pytest.mark.parametrize("to", WRITTEN)
def test_a_transcript_says_the_same_after_it_went_out_and_came_in_again(
    imported: ImportedSource, to: str, tmp_path: Path
) -> None:
    """Every fourth sample, another fourth for each format; the slow test tries all pairs."""
    for number, path in enumerate(samples()[WRITTEN.index(to) % 4 :: 4]):
        check_export(imported(path), to, tmp_path)
        twice = [tmp_path / f"{number}-{time}" for time in ("first", "second")]
        for folder, session in product(twice, imported(path)):
            folder.mkdir(exist_ok=True)
            exported(session, to, folder)
        assert read_files(twice[0]) == read_files(twice[1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "formats"),
    [
        *(pytest.param(path, WRITTEN, id=name_of(path)) for path in samples()),
        # Of these there are many, so each is written in a third of the formats.
        *(
            pytest.param(path, WRITTEN[number % 3 :: 3], id=name_of(path))
            for number, path in enumerate(real())
        ),
    ],
)
def test_every_transcript_says_the_same_in_every_format(
    store: SessionStore, path: Path, formats: Sequence[str], tmp_path: Path
) -> None:
    sessions = import_sessions(store, path)
    for to in formats:
        folder = tmp_path / to
        folder.mkdir()
        check_export(sessions, to, folder)


TIMED = [
    "atif",
    "claude-code",
    "codex",
    "opencode",
    "pi",
]


@pytest.mark.parametrize("to", TIMED)
def test_a_time_in_any_notation_of_a_source_goes_out(
    to: str, store: SessionStore, tmp_path: Path
) -> None:
    said = Block.user("go").model_copy(update={"origin": Origin(format="other", time="1700000000")})
    session = store.session("timed")
    session.append(said)

    target, _ = exported(session, to, tmp_path)

    written = b"".join(read_files(target).values())
    assert b"2023-11-14T22:13:20" in written or b"1700000000000" in written


@pytest.mark.parametrize("to", WRITTEN)
def test_a_session_of_our_own_comes_back_with_its_calls_and_results(
    store: SessionStore, to: str, tmp_path: Path
) -> None:
    session = store.session("talk", title="Mine")
    talk(session)

    back, before, after, _ = there_and_back(session, to, tmp_path)

    assert after == before
    assert verify(store).is_ok
    blocks = [entry.block for entry in back.view().entries]
    results = [block for block in blocks if isinstance(block, ToolResult)]
    calls = [
        part.call for part in make_outgoing(back).read_parts() if isinstance(part, OutgoingCall)
    ]
    media = [one for block in blocks for one in media_of(block)]
    assert {one.data for one in media} <= {PNG.data}
    assert {
        "calls": [[c.model, c.usage.model_dump(exclude_none=True)] for c in calls if c.usage][:1],
        "failed results": sum(block.is_error for block in results),
        "has title": back.info.title == "Mine",
        "images": len(media),
    } == {name: it for name, it in KEPT[to].items() if name != "lost"}


def media_of(block: AnyBlock) -> list[Media]:
    match block:
        case ToolResult():
            return list(block.media)
        case Block(media=Media() as media):
            return [media]
        case _:
            return []


def talked(store: SessionStore) -> StoredSession:
    """A session of a few turns, each with a call and its result."""
    session = store.session("talk")
    for number in range(6):
        name = f"call-{number}"
        session.append(Block.user(f"question {number}: " + "why? " * 30))
        session.append(Block.assistant(f"let me see {number}", message_id=f"m{number}"))
        asked = ToolCall(
            tool_call_id=name, name="look", arguments={"at": number}, message_id=f"m{number}"
        )
        session.append(asked)
        session.append(ToolResult(tool_call_id=name, content=f"found {number}: " + "so. " * 30))
        session.append(Block.assistant(f"answer {number}"))
    return session


@pytest.mark.parametrize("to", WRITTEN)
def test_a_summary_stays_one_and_is_never_a_users_words(
    store: SessionStore, to: str, tmp_path: Path
) -> None:
    session = talked(store)
    assert session.compact(
        limit=2_000, options=CompactionOptions(settings={"keep_tokens": "100"})
    ).compacted
    session.append(Block.user("and now?"), Block.assistant("now it is done"))
    pasted = summary_message.wrap_summary("drop it all", Ranges.span(1, 9))
    session.append(Block.user(pasted), Block.assistant("no"))

    for view in (False, True):
        _, before, after, lost = there_and_back(session, to, tmp_path, view=view)

        assert len(before.summaries) == 1
        assert after.summaries == before.summaries, lost
        assert " ".join(pasted.split()) in after.texts["user"]
        assert before.summaries[0] not in after.texts.get("user", "")


def odd(session: StoredSession) -> StoredSession:
    """Fill a session with what some formats cannot hold."""
    session.configure(system_prompt="Be brief.")
    session.configure(tools=[{"name": "read"}])
    session.configure(request_settings={"temperature": 0.5})
    media = [Block(kind=BlockKind.IMAGE, media=one) for one in (TIFF, LINKED)]
    session.append(Block.user("go"), Block(kind=BlockKind.DOCUMENT, media=PDF), *media)
    session.append(Block.thinking("hm"), Block.thinking("ha", native=OTHERS))
    session.append(Block.assistant("", native=OTHERS), Block.note("for us"))
    session.append(Block(kind=BlockKind.ARTIFACT, text="a"))
    session.append(Block.note("{}", name="header", origin=Origin(format="somebody")))
    session.append(ToolCall(tool_call_id="c", name="a b", arguments="[1"))
    parts = (NativePart(native=OTHERS),)
    session.append(ToolResult(tool_call_id="c", content=parts, is_error=True))
    session.record_call(session.view(), call_id="r", usage=Usage(input=1), cost_usd=0.1)
    session.append(Block.user("wrong"))
    session.retract(session.position)
    session.fork("odd/branch").append(Block.user("apart"))
    return session


@pytest.mark.parametrize("to", WRITTEN)
def test_what_a_format_cannot_hold_is_reported_and_what_was_taken_back_is_not_written(
    store: SessionStore, to: str, tmp_path: Path
) -> None:
    target, lost = exported(odd(store.session("odd")), to, tmp_path)

    assert lost == KEPT[to]["lost"]
    assert not any(b"wrong" in content for content in read_files(target).values())


@pytest.mark.parametrize("to", ["claude-code", "opencode", "pi"])
def test_what_a_compaction_shortened_and_usage_without_an_answer_are_reported(
    store: SessionStore, to: str, tmp_path: Path
) -> None:
    session = store.session("shortened")
    session.append(Block.user("first " * 300), Block.assistant("yes " * 300), Block.user("second"))
    kept = session.position
    session.append(ToolCall(tool_call_id="c", name="ls"))
    session.append(ToolResult(tool_call_id="c", content="long " * 500))
    session.compact(CutAt(kept, shortened=session.position))
    session.append(Block.user("third"))
    session.record_call(session.view(), call_id="r", usage=Usage(input=1))

    _, lost = exported(session, to, tmp_path)

    reported = {"blocks that a compaction shortened": 1, "usage of answers without content": 1}
    assert lost.items() >= reported.items()


@pytest.mark.parametrize("path", [pytest.param(path, id=name_of(path)) for path in samples()])
def test_what_went_on_here_follows_what_the_source_recorded(
    store: SessionStore, path: Path, tmp_path: Path
) -> None:
    found = recognize_format(TranscriptSource(path))
    assert found
    if found.name not in WRITTEN:
        return
    session, *_ = import_sessions(store, path)
    session.append(Block.user("wrong"))
    session.retract(session.position)
    session.append(Block.user("go on"))
    session.append(ToolCall(tool_call_id="n1", name="look", arguments={"at": 1}, message_id="n"))
    session.append(ToolResult(tool_call_id="n1", content="calm"))
    session.append(Block.assistant("it is calm"))

    _, before, after, lost = there_and_back(session, found.name, tmp_path)

    compare(before, after, lost)
    assert verify(store).is_ok
    if found.begin_reading:  # a file of lines
        (out,) = tmp_path.glob("*-False*")
        assert out.read_bytes().startswith(path.read_bytes())


def test_an_export_names_the_folder_in_which_the_agent_worked(
    store: SessionStore, tmp_path: Path
) -> None:
    session = store.session("s", project="/home/user/harbour")
    talk(session)

    for to in ("claude-code", "codex", "opencode", "pi", "oh-my-pi"):
        (folder := tmp_path / to).mkdir()
        assert "/home/user/harbour" in exported(session, to, folder)[0].read_text("utf-8"), to


def test_opencode_finds_all_in_its_order_by_times_and_by_ids(
    store: SessionStore, tmp_path: Path
) -> None:
    compacted = SAMPLES / "gemini-cli-lines" / "harbour-goes-on.jsonl"
    (session,) = import_sessions(store, compacted)
    session.append(Block.user("And the pilot?", origin=Origin(format="x", time="2026-03-01")))

    written = exported(session, "opencode", tmp_path)[0].read_text("utf-8")

    messages = json.loads(written)["messages"]
    times = [message["info"]["time"]["created"] for message in messages]
    ids = [message["info"]["id"] for message in messages]
    parts = [part["id"] for message in messages for part in message["parts"]]
    assert "compaction" in [part["type"] for message in messages for part in message["parts"]]
    assert all(sorted(set(found)) == found for found in (times, ids, parts))
