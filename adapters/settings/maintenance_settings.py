"""Defines the settings of maintenance and backups."""

from .section import Section, section_setting


class MaintenanceSettings(Section):
    """What a worker does for the storage in idle hours."""

    enabled: bool = section_setting(True, help="keep the storage in order where a worker runs")
    every: float = section_setting(
        24.0, unit="hours", least=0.1, help="how often bodies and tables are looked after"
    )
    rest: float = section_setting(
        60.0, unit="seconds", least=0, help="how long nobody must have written before a chore"
    )
    patience: float = section_setting(
        24.0, unit="hours", least=0, help="how long a chore waits for that; then it is done"
    )
    cold_after: float | None = section_setting(
        7.0, unit="days", least=0, help="when content is recompressed; none is never"
    )
    level: int = section_setting(
        9, unit="levels of Zstandard", least=1, most=19, help="how hard content is recompressed"
    )
    checkpoint_every: float = section_setting(
        1.0, unit="hours", least=0.1, help="how often a write-ahead log is cut off"
    )
    backup_folder: str | None = section_setting(
        None, help="where backups are kept; it has to be there; none is no backups"
    )
    backup_every: float = section_setting(
        24.0, unit="hours", least=0.1, help="how often one is made"
    )
    backup_keep: int = section_setting(
        7, unit="backups", least=1, help="how many are kept, the newest"
    )
