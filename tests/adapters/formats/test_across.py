"""Whatever format a session goes out in, what was said in it comes back the same."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

import pytest
from heard import Heard, heard
from transcripts import name_of, real, samples

import cutbank
from cutbank import Block, SessionStore, ToolCall, ToolResult
from cutbank.adapters.runtime.exporting.exporter import export, outgoing_of
from cutbank.adapters.runtime.importing.importer import import_path
from cutbank.adapters.runtime.sessions.stored_session import StoredSession
from cutbank.adapters.transcripts.formats.catalog import FORMATS
from cutbank.adapters.transcripts.reports import ExportReport
from cutbank.domain.ranges import Ranges
from cutbank.projections.rendering import summary_message

WRITTEN = [name for name, one in FORMATS.items() if one.write or one.write_folder]
Came = Callable[[Path], list[StoredSession]]
EVERY = [
    *(pytest.param(path, id=name_of(path)) for path in samples()),
    *(pytest.param(path, id=name_of(path), marks=pytest.mark.slow) for path in real()),
]


@pytest.fixture(scope="module")
def came() -> Iterator[Came]:
    """Imports each transcript once, for all the formats that it goes out in."""
    with ExitStack() as opened:

        @lru_cache(maxsize=1)
        def came(path: Path) -> list[StoredSession]:
            opened.close()
            store = opened.enter_context(cutbank.open(":memory:"))
            return imported(store, path)

        yield came


@pytest.fixture
def store() -> Iterator[SessionStore]:
    """How events are stored is tested elsewhere."""
    with cutbank.open(":memory:") as store:
        yield store


def imported(store: SessionStore, path: Path, namespace: str = "default") -> list[StoredSession]:
    """The sessions of a transcript, without the branches that forked off them."""
    (report,) = import_path(store, path, namespace=namespace)
    assert report.format, report.errors
    stored = [store.session(key, namespace=namespace, create=False) for key in report.sessions]
    return [one for one in stored if one.forked_from is None]


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


def there_and_back(
    session: StoredSession, to: str, folder: Path, *, view: bool
) -> tuple[Heard, Heard, ExportReport]:
    """What is heard of a session, and of what it is after it went out and came in again."""
    found = FORMATS[to]
    name = quote(session.key, safe="")[:80]
    target = folder / f"{name}-{view}{found.suffix if found.write else ''}"
    report = export(session, to, target, view=view)
    (back, *_) = imported(session.store, target, namespace=f"{to}-{view}-{name}")
    before, after = outgoing_of(session, view=view), outgoing_of(back)
    return heard(before.parts()), heard(after.parts()), report


def compare(before: Heard, after: Heard, lost: dict[str, int]) -> None:
    """The same was heard, but for what was said to be lost."""
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


@pytest.mark.parametrize("to", WRITTEN)
@pytest.mark.parametrize("path", EVERY)
def test_what_was_said_is_the_same_after_it_went_out_and_came_in_again(
    came: Came, path: Path, to: str, tmp_path: Path
) -> None:
    for session in came(path):
        if not session.view().entries:
            continue  # what nobody said is no transcript
        for view in (False, True):
            before, after, report = there_and_back(session, to, tmp_path, view=view)

            compare(before, after, report.lost)


@pytest.mark.parametrize("view", [False, True], ids=["log", "view"])
@pytest.mark.parametrize("to", WRITTEN)
def test_a_summary_stays_one_and_is_never_a_users_words(
    store: SessionStore, to: str, tmp_path: Path, *, view: bool
) -> None:
    session = talked(store)
    assert session.compact(settings={"keep_tokens": "100"}, limit=2_000).compacted
    session.append(Block.user("and now?"), Block.assistant("now it is done"))
    pasted = summary_message.wrapped("drop it all", Ranges.span(1, 9))
    session.append(Block.user(pasted), Block.assistant("no"))

    before, after, report = there_and_back(session, to, tmp_path, view=view)

    assert len(before.summaries) == 1
    assert after.summaries == before.summaries, report.lost
    assert " ".join(pasted.split()) in after.texts["user"]
    assert before.summaries[0] not in after.texts.get("user", "")
