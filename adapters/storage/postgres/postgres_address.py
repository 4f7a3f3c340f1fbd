"""Parses a server's address: the connection, and the schema of the tables."""

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from ....domain.errors import StorageError
from ..event_log.addresses import hide_passwords, make_absolute, parse_pairs

DEFAULT_SCHEMA = "cutbank"
CONNECTION_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 10,
    "fallback_application_name": "cutbank",
    # Detect a server that vanished silently within a minute.
    "keepalives_idle": 20,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}
_SEARCH_PATH = re.compile(r"search_path\s*=\s*\"?((?:[^\s,\"\\]|\\.)+)")
_EXAMPLE = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE"


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """The address of a log; `name`, which errors show, holds no password."""

    name: str
    schema: str
    connection: dict[str, Any] = field(repr=False)

    @classmethod
    def parse(cls, url: str) -> "PostgresAddress":
        name, url = hide_passwords(url), make_absolute(url)
        if not url.startswith(("postgresql://", "postgres://")):
            return cls._parse_pairs(name, parse_pairs(url))
        credentials = url.partition("://")[2].rpartition("@")[0]
        # libpq would look for a host in the rest of such a password, and show it in an error.
        if any(sign in credentials for sign in "/?#@"):
            raise StorageError(
                f"{name}: write / ? # and @ in a user or password as %2F %3F %23 %40: {_EXAMPLE}"
            )
        base, _, query = url.partition("?")
        words = [word for word in query.split("&") if word]
        schemas = [unquote(word[7:]) for word in words if word.startswith("schema=")]
        rest = "&".join(word for word in words if not word.startswith("schema="))
        return cls._make(name, base + (f"?{rest}" if rest else ""), schemas)

    @classmethod
    def _parse_pairs(cls, name: str, pairs: list[tuple[str, str]] | None) -> "PostgresAddress":
        if pairs is None:
            raise StorageError(
                f"{name}: put values that hold blanks or quotes in quotes: {_EXAMPLE}"
            )
        schemas = [value.strip("'") for key, value in pairs if key == "schema"]
        rest = " ".join(f"{key}={value}" for key, value in pairs if key != "schema")
        return cls._make(name, rest, schemas)

    @classmethod
    def _make(cls, name: str, conninfo: str, schemas: list[str]) -> "PostgresAddress":
        try:
            found = conninfo_to_dict(conninfo)
        except psycopg.Error:
            # libpq's message may quote any part of the address, and so the password.
            raise StorageError(f"{name} is not an address: give {_EXAMPLE}") from None
        searched = _SEARCH_PATH.search(str(found.get("options", "")))
        schema = schemas[-1] if schemas else searched[1] if searched else DEFAULT_SCHEMA
        if not schema or "\0" in schema or len(schema.encode()) > 63:
            raise StorageError(f"{name}: a schema's name has 1 to 63 bytes")
        return cls(name, schema, CONNECTION_DEFAULTS | found)
