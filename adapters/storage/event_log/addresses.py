"""Parses database addresses, and shows them without passwords."""

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from ....domain.errors import StorageError
from ..databases.database_file import make_absolute_name

DEFAULT_SCHEMA = "cutbank"
CONNECTION_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 10,
    "fallback_application_name": "cutbank",
    # Detect a server that vanished silently within a minute.
    "keepalives_idle": 20,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}
_EXAMPLE = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
_URL = re.compile(r"\s*(postgres(?:ql)?)(?:\+\w+)?://(.*)", re.IGNORECASE | re.DOTALL)
_NO_PATH = re.compile(
    r"(?!file:)[a-z][a-z0-9+.-]+://|\s*(?:host\w*|dbname|user|port|service|schema)\s*="
    r"|.*password\s*=",
    re.IGNORECASE | re.DOTALL,
)
"""The URL of another kind of database, or libpq's `host=... dbname=...`."""
_PUBLIC = {"schema", "host", "hostaddr", "port", "dbname", "user", "service", "options"}
"""The parameters of a URL that tell one database from another."""
_PASSWORD = re.compile(r"(password\s*=).*|(?<=://).*@", re.IGNORECASE | re.DOTALL)
_INVALID_PORT = re.compile(r"[^/?:\[]*:(?!\d*(?:[/?,]|$))")
_SEARCH_PATH = re.compile(r"search_path\s*=\s*\"?((?:[^\s,\"\\]|\\.)+)")
_HIDDEN_VALUE = "(hidden)"


def is_postgres(address: str) -> bool:
    return bool(_URL.match(address))


def make_absolute(address: str) -> str:
    """Return the same address in a form that does not depend on the current folder.

    Raises StorageError if it is neither a server's URL nor a path.
    """
    if url := _URL.match(address):
        return f"{url[1].lower()}://{url[2].strip()}"
    if _NO_PATH.match(address):
        name = hide_passwords(address)
        raise StorageError(f"{name} is neither a path nor a URL: give a path, or {_EXAMPLE}")
    return make_absolute_name(address)


def hide_passwords(address: str) -> str:
    """Return the address without passwords, for messages."""
    if not (url := _URL.match(address)):
        return _PASSWORD.sub(rf"\1{_HIDDEN_VALUE}", address)
    scheme, rest = url[1].lower(), url[2].strip()
    # Anything before the last @ may belong to a password that was not percent-encoded.
    credentials, at, place = rest.rpartition("@")
    if ("?" in credentials and "=" in credentials) or (not at and _INVALID_PORT.match(rest)):
        # It may be a password among the parameters, or one without its host.
        return f"{scheme}://{_HIDDEN_VALUE}"
    place, _, query = place.partition("?")
    shown = "&".join(word for word in query.split("&") if _is_public(*word.split("=", 1)))
    user = credentials.partition(":")[0] + at
    return f"{scheme}://{user}{place}{'?' if shown else ''}{shown}"


def _is_public(name: str, value: str = "") -> bool:
    return name.lower() in _PUBLIC and "password" not in value.lower()


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """The address of a log; `name`, which errors show, holds no password."""

    name: str
    schema: str
    connection: dict[str, Any] = field(repr=False)

    @classmethod
    def parse(cls, url: str) -> "PostgresAddress":
        # The extra; an address without a server needs none of it.
        import psycopg  # noqa: PLC0415
        from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415

        name, url = hide_passwords(url), make_absolute(url)
        # libpq would look for a host in the rest of such a password, and show it in an error.
        if any(sign in url.partition("://")[2].rpartition("@")[0] for sign in "/?#@"):
            raise StorageError(
                f"{name}: write / ? # and @ in a user or password as %2F %3F %23 %40: {_EXAMPLE}"
            )
        base, _, query = url.partition("?")
        words = [word for word in query.split("&") if word]
        schemas = [unquote(word[7:]) for word in words if word.startswith("schema=")]
        rest = "&".join(word for word in words if not word.startswith("schema="))
        try:
            found = conninfo_to_dict(base + (f"?{rest}" if rest else ""))
        except psycopg.Error:
            # libpq's message may quote any part of the address, and so the password.
            raise StorageError(f"{name} is not an address: give {_EXAMPLE}") from None
        searched = _SEARCH_PATH.search(str(found.get("options", "")))
        schema = schemas[-1] if schemas else searched[1] if searched else DEFAULT_SCHEMA
        if not schema or "\0" in schema or len(schema.encode()) > 63:
            raise StorageError(f"{name}: a schema's name has 1 to 63 bytes")
        return cls(name, schema, CONNECTION_DEFAULTS | found)
