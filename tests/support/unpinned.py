"""Settings without pins of their own: what stays in a test's views is what the test pins."""

from cutbank.adapters.settings.compaction_settings import PinSettings
from cutbank.adapters.settings.settings import Settings

UNPINNED = Settings(pins=PinSettings(first_prompt=False, kinds=()))
