"""Parses database addresses, and shows them without passwords."""

import re

from ....domain.errors import StorageError
from ..sqlite.database_file import make_absolute_name

_URL = re.compile(r"\s*(postgres(?:ql)?)(?:\+\w+)?://(.*)", re.IGNORECASE | re.DOTALL)
_KEYWORDS = (
    r"application_name|channel_binding|client_encoding|connect_timeout|dbname|"
    r"fallback_application_name|gssencmode|hostaddr|host|keepalives\w*|krbsrvname|"
    r"load_balance_hosts|options|passfile|password|port|replication|require_auth|schema|"
    r"service|ssl\w*|target_session_attrs|tcp_user_timeout|user"
)
"""The parameters of libpq, and our own `schema`."""
_PAIRS = re.compile(rf"\s*(?:{_KEYWORDS})\s*=", re.IGNORECASE)
_PAIR = re.compile(r"\s*(\w+)\s*=\s*('(?:[^'\\]|\\.)*'|(?:[^\s'\\]|\\.)*)(?:\s+|$)", re.DOTALL)
_PUBLIC = re.compile(rf"(?!\w*password)(?:{_KEYWORDS})", re.IGNORECASE)
_PASSWORD = re.compile(r"(password\s*=).*|(?<=://).*@", re.IGNORECASE | re.DOTALL)
_SCHEME = re.compile(r"(?!file:)[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_INVALID_PORT = re.compile(r"[^/?:\[]*:(?!\d*(?:[/?,]|$))")
_HIDDEN_VALUE = "(hidden)"


def is_postgres(address: str) -> bool:
    """Return whether the address is a server's: a URL, or libpq's `host=... dbname=...`."""
    return bool(_URL.match(address) or _PAIRS.match(address))


def make_absolute(address: str) -> str:
    """Return the same address in a form that does not depend on the current folder.

    Raises StorageError if it is neither a server's address nor a path.
    """
    if url := _URL.match(address):
        scheme, rest = url.groups()
        return f"{scheme.lower()}://{rest.strip()}"
    if is_postgres(address):
        return address.strip()
    if _PASSWORD.search(address) or _SCHEME.match(address):
        raise StorageError(
            f"{hide_passwords(address)} is neither a path nor an address: give a path, or "
            f"postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
        )
    return make_absolute_name(address)


def hide_passwords(address: str) -> str:
    """Return the address without passwords, for messages."""
    if url := _URL.match(address):
        return _hide_url_passwords(url[1].lower(), url[2].strip())
    if is_postgres(address):
        pairs = parse_pairs(address)
        if pairs is None:
            return f"a PostgreSQL address {_HIDDEN_VALUE}"
        public = [f"{name}={value}" for name, value in pairs if _is_public(name, value)]
        return " ".join(public) or f"a PostgreSQL address {_HIDDEN_VALUE}"
    return _PASSWORD.sub(rf"\1{_HIDDEN_VALUE}", address)


def parse_pairs(address: str) -> list[tuple[str, str]] | None:
    """Return the names and values of libpq's notation as written; None if it is malformed."""
    pairs, end = [], 0
    while end < len(address):
        if not (pair := _PAIR.match(address, end)):
            return None
        pairs.append((pair[1], pair[2]))
        end = pair.end()
    return pairs


def _hide_url_passwords(scheme: str, rest: str) -> str:
    # Anything before the last @ may belong to a password that was not percent-encoded.
    credentials, at, place = rest.rpartition("@")
    if ("?" in credentials and "=" in credentials) or (not at and _INVALID_PORT.match(rest)):
        # It may be a password among the parameters, or one without its host.
        return f"{scheme}://{_HIDDEN_VALUE}"
    place, _, query = place.partition("?")
    words = [word.partition("=") for word in query.split("&")]
    told = "&".join(f"{name}={value}" for name, _, value in words if _is_public(name, value))
    user = credentials.partition(":")[0] + at
    return f"{scheme}://{user}{place}{'?' if told else ''}{told}"


def _is_public(name: str, value: str) -> bool:
    return bool(_PUBLIC.fullmatch(name)) and "password" not in value.lower()
