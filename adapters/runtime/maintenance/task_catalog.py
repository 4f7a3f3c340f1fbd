"""Lists the maintenance tasks of a store, in their order."""

from datetime import timedelta
from pathlib import Path

from ...settings.maintenance_settings import MaintenanceSettings
from ...storage.read_models.location import find_read_models
from ..sessions.session_store import SessionStore
from .backup_rotation import BackupRotation
from .database_task import DatabaseTask
from .maintenance_task import MaintenanceTask
from .read_model_maintenance import ReadModelFile, ReadModelMaintenance
from .recompression import Recompression


def make_tasks(store: SessionStore, settings: MaintenanceSettings) -> list[MaintenanceTask]:
    """Return the tasks; none if they are turned off or the log is in memory.

    Read models get their task only once they exist.
    """
    place = store.events.recorder.get_storage()
    if place is None or not settings.enabled:
        return []
    every = timedelta(hours=settings.every)
    chores: list[MaintenanceTask] = []
    if settings.cold_after is not None:
        cold_after = timedelta(days=settings.cold_after)
        chores.append(Recompression(store.events, place, every, cold_after, settings.level))
    file = ReadModelFile(Path(find_read_models(store.name)))
    if file.is_there():
        chores.append(ReadModelMaintenance(file, every))
    if settings.backup_folder is not None:
        folder = Path(settings.backup_folder).expanduser()
        often = timedelta(hours=settings.backup_every)
        chores.append(BackupRotation(store, place, often, folder, settings.backup_keep))
    # The checkpoint comes last, since the tasks before it fill the write-ahead log.
    is_checkpoint = place.task_name == "checkpoint"
    often = timedelta(hours=settings.checkpoint_every) if is_checkpoint else every
    chores.append(DatabaseTask(place, often))
    return chores
