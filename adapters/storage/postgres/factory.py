"""Gives eventsourcing's application our datastore, recorder and mapper for PostgreSQL."""

from eventsourcing.persistence import ApplicationRecorder
from eventsourcing.postgres import PostgresFactory
from eventsourcing.utils import Environment, EnvType

from .postgres_address import PostgresAddress
from .postgres_datastore import PostgresLogDatastore
from .postgres_recorder import PostgresRecorder


class Factory(PostgresFactory):
    """The PostgreSQL persistence module: `POSTGRES_URL`, and `POSTGRES_SYNCHRONOUS` FULL or NORMAL.

    eventsourcing's variables for the parts of an address stay empty.
    """

    def __init__(self, env: Environment | EnvType | None) -> None:
        env = env if isinstance(env, Environment) else Environment(env=env)
        address = PostgresAddress.parse(env.get("POSTGRES_URL", ""))
        parts = ("POSTGRES_DBNAME", "POSTGRES_HOST", "POSTGRES_USER", "POSTGRES_PASSWORD")
        super().__init__(Environment(env.name, {**env, **dict.fromkeys(parts, "")}))
        # The stock datastore has opened no connection yet, and ours replaces it.
        self.datastore.close()
        self._own = self.datastore = PostgresLogDatastore(
            address, synchronous=self.env.get("POSTGRES_SYNCHRONOUS", "FULL")
        )

    def application_recorder(self) -> ApplicationRecorder:
        return PostgresRecorder(datastore=self._own)
