"""Which database an address names, and what eventsourcing is told to open it."""

from eventsourcing.utils import get_topic

from .event_mapper import ZstdCompressor
from .sqlite.factory import Factory


def environment(address: str, *, synchronous: str, compress: bool) -> dict[str, str]:
    """The settings of eventsourcing's application for the database at `address`."""
    env = {
        "PERSISTENCE_MODULE": get_topic(Factory),
        "SQLITE_DBNAME": address,
        "SQLITE_SYNCHRONOUS": synchronous,
    }
    if compress:
        env["COMPRESSOR_TOPIC"] = get_topic(ZstdCompressor)
    return env
