"""Chooses the eventsourcing settings that open the database at an address."""

from importlib.util import find_spec

from eventsourcing.utils import get_topic

from ....domain.errors import StorageError
from ..sqlite.factory import Factory  # with the store, not at its first opening
from .addresses import is_postgres, shown
from .event_mapper import ZstdCompressor


def environment(address: str, *, synchronous: str, compress: bool) -> dict[str, str]:
    """The settings of eventsourcing's application for the database at `address`."""
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


def holds_log(address: str) -> bool:
    """Whether a server's database holds cutbank's tables; changes nothing."""
    _check_extra(address)
    from ..postgres.datastore import holds_log  # noqa: PLC0415 - only there with the extra

    return holds_log(address)


def _check_extra(address: str) -> None:
    if not (find_spec("psycopg") and find_spec("psycopg_pool")):
        raise StorageError(
            f"{shown(address)}: PostgreSQL needs one thing more: pip install 'cutbank[postgres]'"
        )
