"""Which policies decide beside live sessions, and are never served."""

from pydantic import field_validator

from ...domain.errors import InvalidSettingError
from .policy_catalog import policy_named
from .section import VALUE, Section, Texts, contradiction, setting


class ShadowSettings(Section):
    """Which policies decide beside live sessions, and are never served."""

    policies: Texts = setting(
        (), help="each decides before each call on a lineage of its own: NAME or NAME@PRESET"
    )

    @field_validator("policies")
    @classmethod
    def _are_policies(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for at, text in enumerate(given):
            try:
                policy_named(text, {})
            except InvalidSettingError as error:
                raise contradiction(((at,), f"{VALUE}: {error}")) from None
            if text in given[:at]:
                raise contradiction(((at,), f"names {text} a second time: leave it out"))
        return given
