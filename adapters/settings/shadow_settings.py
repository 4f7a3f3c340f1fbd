"""Defines the policies that decide in the shadow of live sessions and are never served."""

from pydantic import field_validator

from ...domain.errors import InvalidSettingError
from .policy_catalog import get_policy
from .section import VALUE_PLACEHOLDER, Section, TextTuple, make_contradiction, section_setting


class ShadowSettings(Section):
    """Which policies decide beside live sessions, and are never served."""

    policies: TextTuple = section_setting(
        (), help="each decides before each call on a lineage of its own: NAME or NAME@PRESET"
    )

    @field_validator("policies")
    @classmethod
    def _check_policies(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for at, text in enumerate(given):
            try:
                get_policy(text)
            except InvalidSettingError as error:
                raise make_contradiction(((at,), f"{VALUE_PLACEHOLDER}: {error}")) from None
            if text in given[:at]:
                raise make_contradiction(((at,), f"names {text} a second time: leave it out"))
        return given
