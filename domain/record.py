"""The shape shared by everything that is stored: frozen, and tolerant of fields from the future."""

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A frozen value of the stored format.

    A field that this version does not know is kept and written back, never refused:
    a log outlives the program that wrote it.
    """

    model_config = ConfigDict(frozen=True, extra="allow")
