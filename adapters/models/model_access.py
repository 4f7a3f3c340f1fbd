"""Opens models by name, and translates their providers' errors without quoting them."""

import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pydantic_ai import exceptions as failed
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model, parse_model_id
from pydantic_ai.providers import Provider, infer_provider, infer_provider_class

from ...domain.errors import SummarizerFailedError
from ...domain.overflow import recognize_overflow
from .notes_writer import TooLongError

OLLAMA_URL = "http://localhost:11434/v1"
"""Ollama's default address."""

_KEY_VARIABLES = {
    "anthropic": "ANTHROPIC_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY",
    "bedrock": "AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "google-cloud": "GOOGLE_APPLICATION_CREDENTIALS",
    "google": "GOOGLE_API_KEY",
    "openai": "OPENAI_API_KEY",
}
_VARIABLE = re.compile(r"`([A-Z][A-Z0-9]*_[A-Z0-9_]+)`")


@asynccontextmanager
async def open_model(
    model: Model | str, base_url: str | None, key_from: str | None
) -> AsyncIterator[Model]:
    """Open the model for this event loop, and close it afterwards.

    Connections belong to an event loop, and each summary has its own loop, so even a model that was
    handed in is closed.
    """
    made = find_model(model, base_url, key_from) if isinstance(model, str) else model
    boto: Any = getattr(made, "client", None) if made.system == "bedrock" else None
    if boto and made is not model:
        # boto would retry unseen by our limits; and its client is never closed.
        events, of = boto.meta.events, boto.meta.service_model.endpoint_prefix
        events.unregister(f"needs-retry.{of}", unique_id=f"retry-config-{of}")
    async with made:
        try:
            yield made
        finally:
            if boto and made is not model:
                boto.close()


def find_model(name: str, base_url: str | None = None, key_from: str | None = None) -> Model:
    """Return the model for a name such as `anthropic:claude-haiku-4-5`."""
    try:
        return infer_model(name, lambda provider: _make_provider(provider, base_url, key_from))
    except (UserError, ImportError, ValueError) as error:
        # No key, an unknown provider or a library that is not installed: the message says which.
        raise SummarizerFailedError(_to_one_line(name, error)) from error


def describe_key_variables(name: str, key_from: str | None) -> str:
    if key_from:
        return key_from
    provider = (parse_model_id(name)[0] or name).removeprefix("gateway/")
    for known, variable in _KEY_VARIABLES.items():
        if provider == known or provider.startswith(f"{known}-"):
            return variable
    return f"{re.sub(r'[^A-Za-z0-9]', '_', provider).upper()}_API_KEY"


def _make_provider(name: str, base_url: str | None, key_from: str | None) -> Provider[Any]:
    given: dict[str, str] = {}
    if name == "ollama" and not base_url and not os.environ.get("OLLAMA_BASE_URL"):
        base_url = OLLAMA_URL
    if base_url:
        given["base_url"] = base_url
    if key_from:
        given["api_key"] = _read_key(key_from)
    if not given:
        return infer_provider(name)
    provider_class = infer_provider_class(name)
    try:
        return provider_class(**given)
    except TypeError as error:
        raise SummarizerFailedError(
            f"the provider {name!r} takes no {' or '.join(given)} of your own; "
            "for a server that speaks OpenAI's format, name the model 'openai-chat:MODEL'"
        ) from error


def _read_key(variable: str) -> str:
    key = os.environ.get(variable, "").strip()
    if not key:
        raise SummarizerFailedError(f"no key; set the environment variable {variable}")
    return key


def _to_one_line(name: str, error: Exception) -> str:
    if isinstance(error, UserError) and (found := _VARIABLE.search(error.message)):
        return f"{name} needs {found[1]}; set that environment variable"
    if str(error).startswith("Unknown "):
        return (
            f"{_first_line(error)}; name a model as PROVIDER:MODEL, "
            "such as 'anthropic:claude-haiku-4-5'"
        )
    return f"{name}: {_first_line(error)}"


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__).rstrip(".")


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
_BUSY = frozenset({408, 409, 429})
_LATE = ("did not answer in time", True)
_UNREACHED = ("could not be reached, or the connection was lost", True)
_ITS_FAULT = ("failed on its side{code}", True)
_REJECTED = ("rejected the request{code}; check the model's settings", False)
_FAILURES: dict[Any, tuple[str, bool]] = {
    failed.ModelAuthenticationError: ("refused the key{code}; set {keys} to a valid one", False),
    failed.ModelQuotaExceededError: ("has no quota or credit left{code}; see the account", False),
    failed.ModelNotFoundError: ("does not exist there{code}; check name and base URL", False),
    failed.ModelRateLimitError: ("is rate limited{code}", True),
    failed.ModelOverloadedError: ("is overloaded{code}", True),
    failed.ModelUnavailableError | failed.ModelServerError: _ITS_FAULT,
    failed.ModelRequestTimeout | failed.ModelTimeoutError | TimeoutError: _LATE,
    failed.ModelConnectionError | OSError: _UNREACHED,
    failed.ModelRequestRejectedError | failed.ModelHTTPError: _REJECTED,
    failed.ModelAPIError: ("broke off{code}", True),
    failed.ContentFilterError: ("answered nothing: its content filter stepped in", False),
    # Clients trust the provider's format, and fail in various ways if it is wrong.
    failed.UnexpectedModelBehavior | AttributeError | LookupError | ValueError: (
        "answered in a form that cannot be read",
        True,
    ),
    failed.UserError | TypeError: ("cannot be asked so; check the model's settings", False),
}
"""What happened by the error's class, and whether a retry may succeed; the first one counts."""


def translate_model_error(error: Exception, model: str, keys: str) -> Exception:
    """Return the exception to raise for a model's error, marked as retryable or not.

    The provider's own text is left out, since it may quote the key or the conversation.
    """
    if isinstance(error, SummarizerFailedError | TooLongError):
        return error
    is_http = isinstance(error, failed.ModelHTTPError)
    if isinstance(error, failed.ModelContextWindowExceededError) or (
        is_http and recognize_overflow(error)
    ):
        return TooLongError()
    text, is_transient = _describe_error(error)
    text = text.format(code=_find_code(error), keys=keys)
    retry_after_s = getattr(error, "retry_after", None) if is_transient else None
    return SummarizerFailedError(
        f"{model} {text}", is_transient=is_transient, retry_after_s=retry_after_s
    )


def _describe_error(error: Exception) -> tuple[str, bool]:
    """Return what happened, and whether a retry may succeed."""
    found = next((said for kinds, said in _FAILURES.items() if isinstance(error, kinds)), None)
    if found is _REJECTED:
        status = getattr(error, "status_code", 0)
        return _ITS_FAULT if status >= 500 or status in _BUSY else _REJECTED
    if found is not None:
        return found
    # Errors of optional libraries are known by the names of their classes.
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & _NO_CREDENTIALS:
        return "has no key; set {keys}", False
    if any("Timeout" in name for name in names):
        return _LATE
    if names & _CONNECTION_ERRORS or any(name.endswith("TransportError") for name in names):
        return _UNREACHED
    return f"failed with a {type(error).__name__}", False


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
