"""Which database an address names, how it is shown, and what eventsourcing is told to open it."""

from importlib.util import find_spec

from eventsourcing.utils import get_topic

from ...domain.errors import StorageError
from ..sqlite.factory import Factory  # with the store, not at its first opening
from .event_mapper import ZstdCompressor

POSTGRES = ("postgresql://", "postgres://")


def is_postgres(address: str) -> bool:
    """Whether the address is a server's; everything else is a file's."""
    return address.startswith(POSTGRES)


def shown(address: str) -> str:
    """The address as it may be read by anybody: without passwords."""
    if not is_postgres(address):
        return address
    scheme, _, rest = address.partition("://")
    # Whatever stands before the last @ may be part of a password that was not percent-encoded.
    credentials, at, place = rest.rpartition("@")
    place, _, query = place.partition("?")
    told = "&".join(word for word in query.split("&") if word and "password" not in word.lower())
    user = credentials.partition(":")[0] + at
    return f"{scheme}://{user}{place}{'?' if told else ''}{told}"


def environment(address: str, *, synchronous: str, compress: bool) -> dict[str, str]:
    """The settings of eventsourcing's application for the database at `address`."""
    if is_postgres(address):
        _check_extra(address)
        env = {
            "PERSISTENCE_MODULE": "cutbank.adapters.postgres.factory:Factory",
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
