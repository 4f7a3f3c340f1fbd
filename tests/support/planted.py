"""Secrets that nobody has, one of each kind, and transcripts with them in every place."""

import json
from typing import Any

LETTERS = "aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW3xY5zA7bC9dE2fG4hJ6kL8mN1pQ3rS5tU7vW9xY2z"
HEX = "3f9a1c7e5b2d8f4a6c1e9b7d3f5a2c8e4b6d1f9a7c3e5b8d2f4a6c9e1b7d3f5a"


def some(length: int, of: str = LETTERS) -> str:
    return (of * 4)[:length]


JWT = ".".join(("eyJhbGciOiJIUzI1NiJ9", "eyJzdWIiOiJyaXZlciJ9", some(43)))
KEY_LINES = "\n".join(some(64) for _ in range(8))
PRIVATE_KEY = f"-----BEGIN RSA {'PRIVATE'} KEY-----\n{KEY_LINES}\n-----END RSA {'PRIVATE'} KEY-----"

SECRETS = {
    "AWS Access Key": "AKIA" + some(16, HEX.upper()),
    "Anthropic Key": "sk-ant-" + "api03-" + some(90),
    "Azure Storage Account access key": "AccountKey=" + some(86) + "==",
    "Basic Auth Credentials": some(18),
    "Discord Bot Token": "M" + some(23) + "." + some(6) + "." + some(27),
    "GitHub Token": "ghp_" + some(36),
    "GitLab Token": "glpat-" + some(20),
    "Google API Key": "AIza" + some(35),
    "Google OAuth Secret": "GOCSPX-" + some(28),
    "Groq Key": "gsk_" + some(52),
    "Hugging Face Token": "hf_" + some(34),
    "JSON Web Token": JWT,
    "Mailchimp Access Key": some(32, HEX) + "-us12",
    "NPM Token": "npm_" + some(36),
    "OpenAI Token": "sk-" + "proj-" + some(80),
    "OpenRouter Key": "sk-or-v1-" + HEX,
    "Private Key": PRIVATE_KEY,
    "PyPI Token": "pypi-" + "AgEIcHlwaS5vcmc" + some(90),
    "SendGrid API Key": "SG." + some(22) + "." + some(43),
    "Slack Token": "xoxb-" + "123456789012-" + some(24, HEX),
    "Square OAuth Secret": "sq0csp-" + some(43),
    "Stripe Access Key": "sk_" + "live_" + some(24),
    "Telegram Bot Token": "123456789:" + some(35),
    "Twilio API Key": "SK" + some(32, HEX),
    "xAI Key": "xai-" + some(80),
}
"""Kind to an example."""


def in_words(kind: str) -> str:
    """The secret as it stands in a text."""
    if kind == "Basic Auth Credentials":
        return f"postgres://river:{SECRETS[kind]}@db.internal/bank"
    return f"use {SECRETS[kind]} for it"


def sought(kind: str) -> list[bytes]:
    """What may be found nowhere, however it was escaped: of a long secret each line."""
    return [line.encode() for line in SECRETS[kind].split("\n") if "PRIVATE" not in line]


def planted(value: Any, words: str) -> Any:
    """The value with the words in every text, in JSON text as well, and in fields of its own."""
    match value:
        case str() if value[:1] in ("{", "["):
            try:
                return json.dumps(planted(json.loads(value), words))
            except ValueError:
                return f"{value} {words}"
        case str() if " " in value:
            return f"{value} {words}"
        case list():
            return [planted(item, words) for item in value]
        case dict():
            told = {key: planted(item, words) for key, item in value.items()}
            return told | {"planted": words, "also": {words: [words, json.dumps({"in": words})]}}
        case _:
            return value


def plant_in_lines(raw: str, words: str) -> str:
    """Each line that is JSON, planted."""
    return "".join(_planted_line(line, words) for line in raw.splitlines(keepends=True))


def _planted_line(line: str, words: str) -> str:
    try:
        return json.dumps(planted(json.loads(line), words)) + "\n"
    except ValueError:
        return line
