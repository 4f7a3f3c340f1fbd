"""Finds a session by its name, a prefix of it, its title, or `last`."""

from collections.abc import Container, Iterable
from itertools import takewhile

from ....domain.errors import NotFoundError
from ...runtime.sessions.session_store import SessionStore
from ...runtime.sessions.stored_session import StoredSession
from .printing import clip_text
from .session_list import get_listed_title, list_all, sort_newest_first

LAST_WORD = "last"
_MIN_NAME_CHARACTERS = 4
"""The minimum length of a shown name."""
_FULL_NAME_CHARACTERS = 8
"""Names of at most this length are shown in full."""
_MAX_NAMED_SESSIONS = 5


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
    ordered = sorted((name, key) for key, name in names.items())
    found = {}
    for at, (name, key) in enumerate(ordered):
        beside = [ordered[near][0] for near in (at - 1, at + 1) if 0 <= near < len(ordered)]
        shared = max((_shared_prefix_length(name, other) for other in beside), default=0)
        if shared >= len(name) or len(name) <= _FULL_NAME_CHARACTERS:
            found[key] = key if name in beside else name
        else:
            found[key] = name[: max(_MIN_NAME_CHARACTERS, shared + 1)]
    return found


def _shared_prefix_length(one: str, other: str) -> int:
    """Return the number of initial characters that two names share."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


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
    more = (
        f" and {len(found) - _MAX_NAMED_SESSIONS} more" if len(found) > _MAX_NAMED_SESSIONS else ""
    )
    return f"{word!r} fits {len(found)} sessions: {', '.join(said)}{more}; type more of one name"
