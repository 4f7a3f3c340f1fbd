"""Stores sessions of Google's Agent Development Kit: events as items, state as records."""

from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from time import time
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import quote, unquote
from uuid import uuid4

from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event
from google.adk.sessions import BaseSessionService, Session, State
from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse
from pydantic_core import to_jsonable_python

import cutbank
from cutbank import NotFoundError, Ranges, SessionStore, StoredSession, run_async

from .framework_adapter import append_items, repeat_overtaken
from .google_adk_events import read_event

_APPS = "adk"
"""The namespace of what the users of an app share; those of an app's sessions are `adk/APP`."""
_CREATED_RECORD = "google-adk/created"
"""When a session was created, in seconds since 1970; no other session under `adk/` has it."""
_STATE = "google-adk/state/"
"""Begins the names of the records that hold a state, one for each key."""


class CutbankSessionService(BaseSessionService):
    """A session service whose events are items of a log, and whose state is records of it.

    `store` is an open store, or the address of a database that this one opens and closes. An app
    is a namespace `adk/APP`, a session of a user `USER/SESSION` there, about the user as its
    subject. State of an app is kept in the session APP of `adk`, that of a user in `USER/`.
    """

    def __init__(self, store: SessionStore | str | Path = "sessions.db") -> None:
        self._owned = None if isinstance(store, SessionStore) else cutbank.open(store)
        self.store = store if isinstance(store, SessionStore) else cast(SessionStore, self._owned)

    def log(self, *, app_name: str, user_id: str, session_id: str) -> StoredSession:
        """Return the stored session. Raises NotFoundError if there is none."""
        name = f"{_name_user(user_id)}{session_id.strip()}"
        return self.store.session(name, namespace=f"{_APPS}/{app_name}", create=False)

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Create a session. Raises AlreadyExistsError."""
        name = (session_id or "").strip() or str(uuid4())
        return await run_async(
            repeat_overtaken, lambda: self._create(app_name, user_id, name, state or {})
        )

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        """Return a session with its events in the order in which they were appended, or None."""
        return await run_async(self._get, app_name, user_id, session_id, config)

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """List the sessions of an app, or of one user, without events, the last active one last."""
        return ListSessionsResponse(sessions=await run_async(self._list, app_name, user_id))

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Delete a session; `store.erase` removes its content. State of user and app stays."""
        with suppress(NotFoundError):
            await run_async(
                lambda: self.store.delete(
                    self.log(app_name=app_name, user_id=user_id, session_id=session_id)
                )
            )

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """Return what all sessions of a user share, without the prefix of its keys."""
        return await run_async(
            lambda: _read_state(self._find(f"{_APPS}/{app_name}", _name_user(user_id)))
        )

    async def append_event(self, session: Session, event: Event) -> Event:
        """Store an event with the state that it changes, in one transaction, if it is not partial.

        The same event again is not stored again. Raises SessionNotFoundError, and
        StaleSessionError if the stored session has other events than this copy of it.
        """
        if event.partial:
            return event
        is_new = await run_async(repeat_overtaken, lambda: self._append(session, event))
        if not is_new:
            return event
        session.last_update_time = event.timestamp
        return await super().append_event(session, event)

    async def close(self) -> None:
        """Close the database, if it was opened here."""
        if self._owned:
            await run_async(self._owned.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def _create(self, app: str, user: str, name: str, state: Mapping[str, Any]) -> Session:
        created = time()
        with self.store.batch():
            log = self._open(f"{_APPS}/{app}", f"{_name_user(user)}{name}", user)
            if log.records.get(_CREATED_RECORD):
                raise AlreadyExistsError(f"Session with id {name} already exists.")
            log.records.put(_CREATED_RECORD, created, expect=0)
            self._put_state(app, user, log, state)
            return self._make_session(app, user, log, created)

    def _append(self, session: Session, event: Event) -> bool:
        """Store an event; return whether it was not stored before."""
        app, user = session.app_name, session.user_id
        item = read_event(event)
        with self.store.batch():
            try:
                log = self.log(app_name=app, user_id=user, session_id=session.id)
            except NotFoundError as error:
                raise SessionNotFoundError(f"Session {session.id} not found: {error}") from None
            position = log.position
            known = log.find(event.id)
            if known and _read_item(log, known.last) == item.json:
                return False
            if _find_update_time(log) != session.last_update_time:
                raise StaleSessionError(
                    f"Session {session.id} was modified in storage since it was read: get it again."
                )
            keys = None if known else [event.id]
            append_items(self.store, log, [item], keys, expect=position)
            self._put_state(app, user, log, event.actions.state_delta)
            if rewound := event.actions.rewind_before_invocation_id:
                _retract_from(log, rewound, position)
        return True

    def _get(
        self, app: str, user: str, name: str, config: GetSessionConfig | None
    ) -> Session | None:
        try:
            log = self.log(app_name=app, user_id=user, session_id=name)
        except NotFoundError:
            return None
        # Before the events, so that one that comes in between makes this copy a stale one.
        updated = _find_update_time(log)
        found = self._make_session(app, user, log, updated)
        config = config or GetSessionConfig()
        newest, after = config.num_recent_events, config.after_timestamp
        blocks = log.blocks(newest_first=newest is not None, retracted=True)
        texts = (text for one in blocks if (text := one.item_text))
        # All are read before the first is parsed: so many objects at once would be collected often.
        read = list(texts if after is not None else islice(texts, newest))
        events = (Event.model_validate_json(text) for text in read)
        wanted = [one for one in events if after is None or one.timestamp >= after][:newest]
        found.events = wanted if newest is None else wanted[::-1]
        return found

    def _list(self, app: str, user: str | None) -> list[Session]:
        namespace, prefix = f"{_APPS}/{app}", "" if user is None else _name_user(user)
        found = []
        for log in self.store.sessions(namespace, prefix=prefix):
            owner = unquote(log.key.partition("/")[0])
            if not log.key.endswith("/"):
                found.append(self._make_session(app, owner, log, _find_update_time(log)))
        return sorted(found, key=lambda one: (one.last_update_time, one.user_id, one.id))

    def _make_session(self, app: str, user: str, log: StoredSession, updated: float) -> Session:
        """Return a session without events, with the state of all its scopes."""
        state: dict[str, Any] = _read_state(log)
        shared = (
            (State.APP_PREFIX, self._find(_APPS, app)),
            (State.USER_PREFIX, self._find(f"{_APPS}/{app}", _name_user(user))),
        )
        for scope, found in shared:
            state |= {f"{scope}{key}": value for key, value in _read_state(found).items()}
        name = log.key.partition("/")[2]
        return Session(app_name=app, user_id=user, id=name, state=state, last_update_time=updated)

    def _put_state(self, app: str, user: str, log: StoredSession, delta: Mapping[str, Any]) -> None:
        """Put each value under its key, in the session, or in what its scope shares."""
        for key, given in delta.items():
            value = to_jsonable_python(given, serialize_unknown=True)
            if key.startswith(State.APP_PREFIX):
                of, name = self._open(_APPS, app, None), key.removeprefix(State.APP_PREFIX)
            elif key.startswith(State.USER_PREFIX):
                of = self._open(f"{_APPS}/{app}", _name_user(user), user)
                name = key.removeprefix(State.USER_PREFIX)
            elif key.startswith(State.TEMP_PREFIX):
                continue
            else:
                of, name = log, key
            of.records.put(f"{_STATE}{name}", value)

    def _open(self, namespace: str, name: str, user: str | None) -> StoredSession:
        return self.store.session(name, namespace=namespace, subject=user or None)

    def _find(self, namespace: str, name: str) -> StoredSession | None:
        try:
            return self.store.session(name, namespace=namespace, create=False)
        except NotFoundError:
            return None


def _name_user(user: str) -> str:
    """Return how the names of a user's sessions begin."""
    return f"{quote(user, safe='@')}/"


def _read_state(log: StoredSession | None) -> dict[str, Any]:
    if log is None:
        return {}
    return {one.name.removeprefix(_STATE): one.value for one in log.records.newest(_STATE)}


def _find_update_time(log: StoredSession) -> float:
    """Return the time of the newest event, or of the creation, in seconds since 1970."""
    for block in log.blocks(newest_first=True, retracted=True):
        if isinstance(item := block.item, dict):
            return cast(float, item["timestamp"])
    created = log.records.get(_CREATED_RECORD)
    return cast(float, created.value) if created else 0.0


def _read_item(log: StoredSession, position: int) -> Any:
    return next(log.blocks(after=position - 1, before=position + 1, retracted=True)).item


def _retract_from(log: StoredSession, invocation_id: str, last: int) -> None:
    """Take back what was said from an invocation on, up to a position, as ADK passes over it."""
    first = 1
    for block in log.blocks(retracted=True):
        if isinstance(item := block.item, dict):
            if item.get("invocationId") == invocation_id:
                log.retract(Ranges.span(first, last), reason="rewound")
                return
            first = block.position + 1
