"""Gives eventsourcing's application our datastore, recorder and mapper for SQLite."""

from eventsourcing.persistence import ApplicationRecorder
from eventsourcing.sqlite import SQLiteFactory
from eventsourcing.utils import Environment, EnvType

from ....domain.errors import StorageError
from .sqlite_datastore import SQLiteLogDatastore
from .sqlite_recorder import SQLiteRecorder


class Factory(SQLiteFactory):
    """The SQLite persistence module; `SQLITE_SYNCHRONOUS` is FULL or NORMAL."""

    def __init__(self, env: Environment | EnvType | None) -> None:
        env = env if isinstance(env, Environment) else Environment(env=env)
        if not env.get("SQLITE_DBNAME"):
            raise StorageError("a database needs a path: give one, or :memory:")
        super().__init__(env)
        # The stock datastore has opened no connection yet, and ours replaces it.
        self.datastore.close()
        self._own = self.datastore = SQLiteLogDatastore(
            self.env.get("SQLITE_DBNAME", ""),
            synchronous=self.env.get("SQLITE_SYNCHRONOUS", "FULL"),
        )

    def application_recorder(self) -> ApplicationRecorder:
        return SQLiteRecorder(datastore=self._own)
