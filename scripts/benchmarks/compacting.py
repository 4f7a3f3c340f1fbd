"""How long a compaction takes that writes its summary by rules."""

from functools import partial

from cutbank import CompactionOptions, SessionStore, StoredSession
from cutbank.adapters.interfaces.commands.demo import write_sample
from cutbank.adapters.runtime.importing.importer import import_files, list_wanted_files
from cutbank.adapters.runtime.sessions.session_store import open_store
from cutbank.domain.compaction_events import Digest
from cutbank.domain.digest import build_digest
from cutbank.domain.item import WindowItem
from cutbank.domain.ranges import Ranges
from cutbank.domain.summaries.extractive import ExtractiveSummarizer
from cutbank.domain.summaries.summarizer import Material

from .figure import Figure, Found, Options
from .timing import alone
from .workload import as_block, turns

HIDDEN, BUDGET, LIMIT = 160_000, 13_107, 200_000
"""Tokens that leave, that the summary may take, and that the model holds."""
KEPT = {"keep_tokens": "400"}
MOST = 50


def compacting(options: Options) -> Found:
    """Of the sample session, and of the turns that everything else is measured with."""
    rounds = 3 if options.smoke else 30
    with open_store(options.folder / "compacting.db") as store:
        for name, session in (("the sample", sample(options, store)), ("turns", told(store))):
            material = hidden(session)
            size = f"{sum(item.tokens for item in material.removed_items) // 1_000}k hidden tokens"
            taken = alone(range(rounds), partial(summarized, material)) * 1e3
            what = f"extractive over {size} of {name}"
            yield Figure(what, "ms", taken, target=f"<= {MOST} ms", met=taken <= MOST)
            forks = [warm(session, f"{name}-{number}") for number in range(rounds)]
            yield Figure(f"a whole compaction of {name}", "ms", alone(forks, compacted) * 1e3)


def sample(options: Options, store: SessionStore) -> StoredSession:
    """The session that cutbank ships."""
    path = options.folder / "sample.jsonl"
    write_sample(path)
    for report in import_files(store, list_wanted_files(path)):
        assert report.complete, report
    (session,) = store.sessions()
    return session


def told(store: SessionStore) -> StoredSession:
    """Turns as everywhere, until enough is there to be hidden."""
    session = store.session("turns")
    for pieces in turns(seed=6):
        session.append(*map(as_block, pieces))
        if session.view().tokens >= HIDDEN:
            break
    return session


def hidden(session: StoredSession) -> Material:
    """All of a session, as if all of it left the view."""
    gone = tuple(
        WindowItem(entry.position, entry.block, entry.turn, entry.tokens, call=entry.call)
        for entry in session.view().entries
    )
    covers = Ranges.span(1, gone[-1].position)
    return Material(gone, covers, budget=BUDGET, digest=build_digest(gone, Digest()))


def summarized(material: Material, _: object) -> object:
    return ExtractiveSummarizer().summarize(material)


def warm(session: StoredSession, key: str) -> StoredSession:
    """A copy that was viewed just now, as an agent's own session was."""
    fork = session.fork(key)
    fork.view()
    return fork


def compacted(session: StoredSession) -> None:
    outcome = session.compact(limit=LIMIT, options=CompactionOptions(settings=KEPT))
    assert outcome.summarizer == "extractive", outcome
