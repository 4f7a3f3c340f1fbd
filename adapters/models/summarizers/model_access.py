"""Finds the model of a name, at its own address and with its own key where these are given."""

import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model, parse_model_id
from pydantic_ai.providers import Provider, infer_provider, infer_provider_class

from ....domain.errors import SummarizerFailedError

OLLAMA_URL = "http://localhost:11434/v1"
"""Where Ollama listens unless it is told otherwise."""

_KEY_VARIABLES = {
    "anthropic": "ANTHROPIC_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY",
    "bedrock": "AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "google-cloud": "GOOGLE_APPLICATION_CREDENTIALS",
    "google": "GOOGLE_API_KEY",
    "openai": "OPENAI_API_KEY",
}
_VARIABLE = re.compile(r"`([A-Z][A-Z0-9]*_[A-Z0-9_]+)`")


MakeModel = Callable[[], Model]


@asynccontextmanager
async def open_model(
    model: Model | str | MakeModel, base_url: str | None, key_from: str | None
) -> AsyncIterator[Model]:
    """The model, ready to be asked in this event loop.

    Connections belong to a loop, and each summary has a loop of its own: so what was opened for it
    is closed with it, that of a model which was handed in as well.
    """
    if isinstance(model, Model):
        made = model
    else:
        made = find_model(model, base_url, key_from) if isinstance(model, str) else model()
    boto: Any = getattr(made, "client", None) if made.system == "bedrock" else None
    if boto and made is not model:
        # boto tries again by itself, unseen by whoever counts the attempts; and nobody closes it.
        events, of = boto.meta.events, boto.meta.service_model.endpoint_prefix
        events.unregister(f"needs-retry.{of}", unique_id=f"retry-config-{of}")
    async with made:
        try:
            yield made
        finally:
            if boto and made is not model:
                boto.close()


def find_model(name: str, base_url: str | None = None, key_from: str | None = None) -> Model:
    """The model of a name such as `anthropic:claude-haiku-4-5`."""
    try:
        return infer_model(name, lambda provider: _make_provider(provider, base_url, key_from))
    except UserError as error:
        raise SummarizerFailedError(_to_one_line(name, error)) from error
    except (ImportError, ValueError) as error:
        # An unknown provider, or one whose own library is not installed: both say so in words.
        raise SummarizerFailedError(_to_one_line(name, error)) from error


def describe_key_variables(name: str, key_from: str | None) -> str:
    """The variables that hold the key of a model's provider."""
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
