"""Gives the store that a session was opened from."""

import cutbank


def store_of(session: cutbank.StoredSession) -> cutbank.SessionStore:
    return cutbank.SessionStore(session.log.context)
