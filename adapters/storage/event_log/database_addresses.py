"""Opens the recorder of the database at an address."""

from importlib.util import find_spec

from eventsourcing.utils import get_topic

from ....domain.errors import StorageError
from ..sqlite.sqlite_recorder import open_sqlite  # with the store, not when it is first opened
from .addresses import hide_passwords, is_postgres
from .event_mapper import ZstdCompressor
from .recorder import Recorder


def make_environment(address: str, *, synchronous: str, compress: bool) -> dict[str, str]:
    """Return the settings of eventsourcing's application for the database at `address`.

    `synchronous` is FULL or NORMAL.
    """
    env = {"DATABASE": address, "SYNCHRONOUS": synchronous}
    if compress:
        env["COMPRESSOR_TOPIC"] = get_topic(ZstdCompressor)
    return env


def open_recorder(address: str, synchronous: str) -> Recorder:
    if not address:
        raise StorageError("a database needs a path: give one, or :memory:")
    if not is_postgres(address):
        return open_sqlite(address, synchronous)
    _check_extra(address)
    from ..postgres.postgres_recorder import open_postgres  # noqa: PLC0415 - needs the extra

    return open_postgres(address, synchronous)


def has_log_tables(address: str) -> bool:
    _check_extra(address)
    from ..postgres.postgres_datastore import has_schema_tables  # noqa: PLC0415 - needs the extra

    return has_schema_tables(address)


def _check_extra(address: str) -> None:
    if not find_spec("psycopg"):
        raise StorageError(
            f"{hide_passwords(address)}: PostgreSQL needs one thing more: pip install "
            "'cutbank[postgres]'"
        )
