"""Which chores there are for a store, in the order in which they are done."""

from datetime import timedelta
from pathlib import Path

from ...settings.chore_settings import ChoreSettings
from ...storage.read_models.location import read_models_of
from ..sessions.session_store import SessionStore
from .backup_rotation import BackupRotation
from .chore import Chore
from .cold_bodies import ColdBodies
from .read_model_care import ReadModelCare, ReadModelFile
from .routine import DatabaseRoutine


def chores_of(store: SessionStore, settings: ChoreSettings) -> list[Chore]:
    """None where they are turned off, or where the log is in memory: there is nothing to keep.

    Read models are looked after once there are some.
    """
    place = store.events.recorder.storage()
    if place is None or not settings.enabled:
        return []
    every = timedelta(hours=settings.every)
    chores: list[Chore] = []
    if settings.cold_after is not None:
        cold_after = timedelta(days=settings.cold_after)
        chores.append(ColdBodies(store.events, place, every, cold_after, settings.level))
    file = ReadModelFile(Path(read_models_of(store.name)))
    if file.is_there():
        chores.append(ReadModelCare(file, every))
    if settings.backup_folder is not None:
        folder = Path(settings.backup_folder).expanduser()
        often = timedelta(hours=settings.backup_every)
        chores.append(BackupRotation(store, place, often, folder, settings.backup_keep))
    # The checkpoint last: what was done before has filled the log.
    is_checkpoint = place.routine == "checkpoint"
    often = timedelta(hours=settings.checkpoint_every) if is_checkpoint else every
    chores.append(DatabaseRoutine(place, often))
    return chores
