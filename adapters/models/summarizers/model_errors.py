"""Translates providers' errors into one line, without quoting requests or responses."""

import re

from pydantic_ai import exceptions as failed

from ....domain.errors import SummarizerFailedError
from ....domain.overflow import recognize_overflow
from .hierarchical_summary import TooLongError

_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{1,59}")
_NO_CREDENTIALS = frozenset(
    {
        "NoCredentialsError",
        "PartialCredentialsError",
        "TokenRetrievalError",
        "DefaultCredentialsError",
    }
)
_CONNECTION_ERRORS = frozenset(
    {"ConnectError", "ConnectionError", "ReadError", "RemoteProtocolError"}
)


def translate_model_error(error: Exception, model: str, keys: str) -> Exception:
    """Return the exception to raise for a model's error, marked as retryable or not.

    The provider's own text is left out, since it may quote the key or the conversation.
    """
    match error:
        case SummarizerFailedError() | TooLongError():
            return error
        case failed.ModelContextWindowExceededError():
            return TooLongError()
        case failed.ModelHTTPError() if recognize_overflow(error):
            return TooLongError()
        case failed.ModelAuthenticationError():
            return _make_failure(
                model, f"refused the key{_find_code(error)}; set {keys} to one that is valid"
            )
        case failed.ModelQuotaExceededError():
            return _make_failure(
                model, f"has no quota or credit left{_find_code(error)}; see the account"
            )
        case failed.ModelNotFoundError():
            meant = getattr(error, "suggested_model_id", None)
            hint = f"; did you mean {meant}?" if meant else "; check its name and the base URL"
            return _make_failure(model, f"does not exist there{_find_code(error)}{hint}")
        case failed.ModelRateLimitError():
            return _make_retryable(model, f"is rate limited{_find_code(error)}", error)
        case failed.ModelOverloadedError():
            return _make_retryable(model, f"is overloaded{_find_code(error)}", error)
        case failed.ModelUnavailableError() | failed.ModelServerError():
            return _make_retryable(model, f"failed on its side{_find_code(error)}", error)
        case failed.ModelRequestTimeout() | failed.ModelTimeoutError():
            return _make_retryable(model, "did not answer in time", error)
        case failed.ModelConnectionError():
            return _make_retryable(model, "could not be reached, or the connection was lost", error)
        case failed.ModelHTTPError(status_code=status) if status >= 500 or status in {
            408,
            409,
            429,
        }:
            return _make_retryable(model, f"failed on its side{_find_code(error)}", error)
        case failed.ModelRequestRejectedError() | failed.ModelHTTPError():
            return _make_failure(
                model, f"rejected the request{_find_code(error)}; check the model's settings"
            )
        case failed.ModelAPIError():
            return _make_retryable(model, f"broke off{_find_code(error)}", error)
        case failed.ContentFilterError():
            return _make_failure(model, "answered nothing: its content filter stepped in")
        case failed.UnexpectedModelBehavior() | AttributeError() | LookupError() | ValueError():
            # Clients trust the provider's format, and fail in various ways if it is wrong.
            return _make_retryable(model, "answered in a form that cannot be read", error)
        case failed.UserError() | TypeError():
            return _make_failure(model, "cannot be asked in this way; check the model's settings")
        case TimeoutError():
            return _make_retryable(model, "did not answer in time", error)
        case OSError():
            return _make_retryable(model, "could not be reached, or the connection was lost", error)
    return _translate_by_name(error, model, keys)


def _translate_by_name(error: Exception, model: str, keys: str) -> SummarizerFailedError:
    """Translate errors of optional libraries by the names of their classes."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & _NO_CREDENTIALS:
        return _make_failure(model, f"has no key; set {keys}")
    if any("Timeout" in name for name in names):
        return _make_retryable(model, "did not answer in time", error)
    if names & _CONNECTION_ERRORS or any(name.endswith("TransportError") for name in names):
        return _make_retryable(model, "could not be reached, or the connection was lost", error)
    return _make_failure(model, f"failed with a {type(error).__name__}")


def _make_failure(model: str, what: str) -> SummarizerFailedError:
    return SummarizerFailedError(f"{model} {what}")


def _make_retryable(model: str, what: str, error: Exception) -> SummarizerFailedError:
    return SummarizerFailedError(
        f"{model} {what}",
        is_transient=True,
        retry_after_s=getattr(error, "retry_after", None),
    )


def _find_code(error: Exception) -> str:
    """Return the HTTP status and the provider's error code, if it is a code and not a sentence."""
    parts: list[str] = []
    if status := getattr(error, "status_code", None):
        parts.append(f"HTTP {status}")
    for field in ("provider_error_code", "provider_error_type"):
        code = getattr(error, field, None)
        if isinstance(code, str) and _CODE.fullmatch(code) and code not in parts:
            parts.append(code)
    return f" ({', '.join(parts)})" if parts else ""
