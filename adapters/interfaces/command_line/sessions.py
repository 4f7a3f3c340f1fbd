"""Opens the database of a call, lists its sessions, and finds one by its name, title or `last`."""

import os
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from platformdirs import user_data_path

from ....domain.errors import NotFoundError, StorageError
from ...runtime.sessions.session_store import SessionStore, open_store
from ...runtime.sessions.store_context import read_store_time
from ...runtime.sessions.stored_session import StoredSession
from ...storage.databases.sqlite_recorder import adopt_copy
from ...storage.event_log.addresses import hide_passwords, is_postgres, make_absolute
from ...storage.event_log.event_store import has_log_tables
from ...storage.event_log.storage_errors import translate_storage_errors
from ...storage.private_files import make_folder
from .printing import clip_text, pick, print_error, show_progress
from .verbs import DATABASE_VARIABLE, Invocation

LAST_WORD = "last"
_MIN_NAME_CHARACTERS = 4
"""The minimum length of a shortened name."""
_FULL_NAME_CHARACTERS = 8
"""Names of at most this length are shown in full."""
_MAX_NAMED_SESSIONS = 5
QUICK_EVENTS = 2_000
"""Events that are read too fast for a progress bar."""

SessionJson = Mapping[str, Any]
"""A session as `sessions --json` prints it."""

INDEX_FIELDS = dict.fromkeys(
    (
        *("first_prompt", "model", "said_at", "compactions"),
        *("in_use", "utilisation", "limit", "limit_source", "idle", "idle_until"),
    )
)
"""The values that only the index has."""


@contextmanager
def open_call_store(
    call: Invocation, *, creates: bool = False, adopts: bool = False
) -> Iterator[SessionStore]:
    """Open the database for one verb; if the verb `creates`, make a missing named one.

    With `adopts`, a copy that was made in use is accepted from now on.
    """
    address = find_call_database(call, creates=creates)
    if adopts:
        adopt_copy(address)
    with (
        open_store(address, settings=call.settings_file) as store,
        translate_storage_errors(store.name),
    ):
        yield store


@contextmanager
def open_call_session(
    call: Invocation, key: str, *, creates: bool = False
) -> Iterator[StoredSession]:
    """Open the session that `key` names; if the verb `creates`, make a missing one."""
    with open_call_store(call, creates=creates) as store:
        if creates and key != LAST_WORD:
            # A verb that fails leaves no new session behind.
            is_new = store.events.load_session(call.namespace, key) is None
            with store.batch() if is_new else nullcontext():
                yield store.session(key, namespace=call.namespace)
        else:
            yield find_session(store, key, call.namespace)


def find_call_database(call: Invocation, *, creates: bool = False) -> str:
    if call.db == "":
        raise StorageError("--db needs a path or an address")
    named = call.db or os.environ.get(DATABASE_VARIABLE)
    if not named:
        return str(_default_path())
    if named.startswith("file:"):
        return named  # SQLite's own notation, which may request read-only access
    if is_postgres(named):
        if not creates and not has_log_tables(named):
            raise StorageError(
                f"{hide_passwords(named)} holds no sessions: `import`, `append` and `demo` "
                "make the tables"
            )
        return named
    make_absolute(named)  # raises for an invalid path
    path = Path(named)
    with suppress(RuntimeError):  # an unknown home: use the name literally
        path = path.expanduser()
    if not creates and not path.exists():
        # Opening creates a file, so a typo in the path would show an empty database.
        raise StorageError(f"{path} does not exist: `import`, `append` and `demo` make it")
    return str(path)


def _default_path() -> Path:
    folder = user_data_path("cutbank", appauthor=False)
    try:
        make_folder(folder)
    except OSError as error:
        raise StorageError(
            f"{folder} cannot be made ({error.strerror}): name a database with --db"
        ) from None
    return folder / "cutbank.db"


def name_to_json(session: StoredSession) -> dict[str, Any]:
    return {"session": session.key, "namespace": session.namespace}


def session_to_json(session: StoredSession) -> dict[str, Any]:
    """Return a session for a list of sessions, read in O(1)."""
    info = session.info
    return {
        **name_to_json(session),
        **pick(info, "title project source"),
        **pick(info.parent, "parent=key"),
        **pick(info.forked_from, "forked_from=key"),
        "position": session.position,
        **pick(info.state, "turn blocks tokens"),
        "open_calls": len(info.state.open_calls),
        "closed": info.state.closed,
        "prepared": session.log.find_prepared(),
        "incomplete": info.incomplete_import,
        "lineages": list(info.lineages),
    }


def list_all(store: SessionStore, namespace: str | None) -> list[dict[str, Any]]:
    """Return the sessions of all namespaces, or of one, as `sessions --json` prints them.

    Without an index, sessions are read from the log one by one, and have no idle work or costs.
    """
    # Read the log first, so that its errors are not taken for errors of the index.
    newest = store.events.recorder.max_notification_id() or 0
    now = read_store_time(store.events)
    try:
        models = store.read_models
        is_slow = newest - models.positions["index"] > QUICK_EVENTS
        with show_progress("reading what is new", wanted=is_slow) as progress:
            models.catch_up(progress, search=False)
    except StorageError as error:
        print_error(f"{error}; so nothing is known of idle work")
        return [session_to_json(one) | INDEX_FIELDS for one in store.sessions(namespace)]
    # A slow import that other verbs do not need.
    from ...storage.read_models.index_queries import list_sessions  # noqa: PLC0415 - start-up time

    find_incomplete = store.events.recorder.select_incomplete_import
    rules, limit = store.settings.idle.make_rules(), store.settings.compaction.limit or 0
    return [
        asdict(one)
        | {
            "incomplete": find_incomplete(one.namespace, one.session),
            "idle": one.idle.value,
            "idle_until": one.idle_until.isoformat() if one.idle_until else None,
        }
        for one in list_sessions(models, namespace, now, rules, limit)
    ]


def sort_newest_first(listed: Iterable[SessionJson]) -> list[SessionJson]:
    return sorted(listed, key=lambda one: one["said_at"] or "", reverse=True)


def get_listed_title(one: SessionJson) -> str:
    return one["title"] or one["first_prompt"] or ""


def find_session(store: SessionStore, word: str, namespace: str) -> StoredSession:
    """Return the one session that `word` names.

    A full name takes precedence, then `last` (the session with the newest event), then a prefix of
    a name, then a title or a prefix of one. Raises NotFoundError if no session matches, or more
    than one does.
    """
    if store.events.load_session(namespace, word) is None:
        word = _find_key(store, word, namespace)
    return store.session(word, namespace=namespace, create=False)


def shorten_names(keys: Iterable[str]) -> dict[str, str]:
    """Return the shortest unique prefix of each name."""
    known = set(keys)
    names = {key: _relative_name(key, known) for key in known}
    prefixes = Counter(name[:end] for name in names.values() for end in range(1, len(name) + 1))
    same = Counter(names.values())
    found = {}
    for key, name in names.items():
        ends = range(_MIN_NAME_CHARACTERS, len(name)) if len(name) > _FULL_NAME_CHARACTERS else ()
        starts = (name[:end] for end in ends)
        whole = name if same[name] == 1 else key
        found[key] = next((start for start in starts if prefixes[start] == 1), whole)
    return found


def _relative_name(key: str, known: Container[str]) -> str:
    """Return a session's name relative to its parent session, if that is known."""
    parent, _, name = key.rpartition("/")
    return name if name and parent in known else key


def _find_key(store: SessionStore, word: str, namespace: str) -> str:
    if word == LAST_WORD:
        if listed := sort_newest_first(list_all(store, namespace)):
            return str(listed[0]["session"])
        return word
    keys = [session.key for session in store.sessions(namespace)]
    found = _match_keys(word, keys)
    if len(found) == 1:
        return found[0]
    every = list_all(store, namespace)
    titles = {one["session"]: get_listed_title(one) for one in every}
    if not found:
        wanted = " ".join(word.split()).casefold()
        named = {key: title.casefold() for key, title in titles.items()} if wanted else {}
        found = [key for key, title in named.items() if title == wanted]
        found = found or [key for key, title in named.items() if title.startswith(wanted)]
    if len(found) > 1:
        raise NotFoundError(_describe_ambiguity(word, found, titles))
    return found[0] if found else word


def _match_keys(word: str, keys: Iterable[str]) -> list[str]:
    """Return names equal to a word, else those that start with it; skip sub-agents of a match."""
    known = set(keys)
    own = {key: _relative_name(key, known) for key in sorted(known)}
    exact = [key for key, name in own.items() if name == word]
    begin = [key for key, name in own.items() if name.startswith(word)]
    return exact or begin or [key for key in own if key.startswith(word)]


def _describe_ambiguity(word: str, found: list[str], titles: dict[str, str]) -> str:
    said = []
    for key in found[:_MAX_NAMED_SESSIONS]:
        title = clip_text(titles.get(key, ""), 30)
        said.append(f"{key} ({title})" if title else key)
    left = len(found) - _MAX_NAMED_SESSIONS
    more = f" and {left} more" if left > 0 else ""
    return f"{word!r} fits {len(found)} sessions: {', '.join(said)}{more}; type more of one name"
