"""Makes the eventsourcing settings for the database at an address."""

from importlib.util import find_spec

from eventsourcing.utils import get_topic

from ....domain.errors import StorageError
from ..sqlite.factory import Factory  # with the store, not when it is first opened
from .addresses import hide_passwords, is_postgres
from .event_mapper import ZstdCompressor


def make_environment(address: str, *, synchronous: str, compress: bool) -> dict[str, str]:
    """Return the settings of eventsourcing's application for the database at `address`."""
    if is_postgres(address):
        _check_extra(address)
        env = {
            "PERSISTENCE_MODULE": "cutbank.adapters.storage.postgres.factory:Factory",
            "POSTGRES_URL": address,
            "POSTGRES_SYNCHRONOUS": synchronous,
        }
    else:
        env = {
            "PERSISTENCE_MODULE": get_topic(Factory),
            "SQLITE_DBNAME": address,
            "SQLITE_SYNCHRONOUS": synchronous,
        }
    if compress:
        env["COMPRESSOR_TOPIC"] = get_topic(ZstdCompressor)
    return env


def has_log_tables(address: str) -> bool:
    _check_extra(address)
    from ..postgres.postgres_datastore import has_schema_tables  # noqa: PLC0415 - needs the extra

    return has_schema_tables(address)


def _check_extra(address: str) -> None:
    if not (find_spec("psycopg") and find_spec("psycopg_pool")):
        raise StorageError(
            f"{hide_passwords(address)}: PostgreSQL needs one thing more: pip install "
            "'cutbank[postgres]'"
        )
