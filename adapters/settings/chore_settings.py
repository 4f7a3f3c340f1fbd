"""When the storage is put in order, how far, and where backups go."""

from .section import Section, setting


class ChoreSettings(Section):
    """What a worker does for the storage in idle hours."""

    enabled: bool = setting(True, help="keep the storage in order where a worker runs")
    every: float = setting(
        24.0, unit="hours", least=0.1, help="how often bodies and tables are looked after"
    )
    rest: float = setting(
        60.0, unit="seconds", least=0, help="how long nobody must have written before a chore"
    )
    patience: float = setting(
        24.0, unit="hours", least=0, help="how long a chore waits for that; then it is done"
    )
    cold_after: float | None = setting(
        7.0, unit="days", least=0, help="when content is recompressed; none is never"
    )
    level: int = setting(
        9, unit="levels of Zstandard", least=1, most=19, help="how hard content is recompressed"
    )
    checkpoint_every: float = setting(
        1.0, unit="hours", least=0.1, help="how often a write-ahead log is cut off"
    )
    backup_folder: str | None = setting(
        None, help="where backups are kept; it has to be there; none is no backups"
    )
    backup_every: float = setting(24.0, unit="hours", least=0.1, help="how often one is made")
    backup_keep: int = setting(7, unit="backups", least=1, help="how many are kept, the newest")
