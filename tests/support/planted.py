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


UUID = "3f9a1c7e-5b2d-8f4a-6c1e-9b7d3f5a2c8e"
MADE_UP = (
    # Kind, the secret, and how it stands in a text.
    ("API Key Header", some(32), "-H 'x-api-key: {}'"),
    ("API Key Header", some(84), '"api-key": "{}"'),
    ("AWS Access Key", "AS" + "IA" + some(16, HEX.upper()), "{}"),
    ("AWS Secret Key", some(40), "aws_secret_access_key = {}"),
    ("AWS Session Token", some(250), "AWS_SESSION_TOKEN={}"),
    ("Age Secret Key", "AGE-SECRET-" + "KEY-1" + some(58, HEX.upper()), "{}"),
    ("Airtable Token", "pa" + "t" + some(14) + "." + HEX, "{}"),
    ("Alibaba Access Key", "LT" + "AI" + some(20), "{}"),
    ("Amazon Bedrock Key", "AB" + "SK" + some(128), "{}"),
    ("Anthropic Key", "sk-" + "ant-oat01-" + some(86), "{}"),
    ("Atlassian Token", "ATA" + "TT3" + some(180), "{}"),
    ("Atlassian Token", "AT" + "BB" + some(32), "{}"),
    ("Auth Token Header", some(20), "PRIVATE-TOKEN: {}"),
    ("Auth Token Header", some(26), "X-Vault-Token: {}"),
    ("Authorization Header", some(40), "Authorization: Bearer {}"),
    ("Authorization Header", some(42), "Authorization: SSWS {}"),
    ("Azure Client Secret", some(3) + "8" + "Q~" + some(34), "{}"),
    ("Azure DevOps Token", some(76) + "AZ" + "DO" + some(4), "{}"),
    ("Azure Shared Access Key", some(43) + "=", "SharedAccessKeyName=all;SharedAccessKey={}"),
    ("Azure Shared Access Signature", some(43) + "%3D", "https://a.invalid/b?sv=2024&sig={}"),
    ("Basic Auth Credentials", some(16), "redis://:{}@cache:6379/0"),
    ("Basic Auth Credentials", some(17), "mongodb+srv://river:{}@db.invalid"),
    ("Basic Auth Credentials", some(18), "curl -s -u river:{} https://a.invalid"),
    ("Basic Auth Credentials", some(19), "machine a.invalid login river password {}"),
    ("Brevo Key", "xkeys" + "ib-" + HEX + "-" + some(16), "{}"),
    ("Cerebras Key", "cs" + "k-" + some(48, HEX), "{}"),
    ("Clojars Token", "CLO" + "JARS_" + some(60, HEX), "{}"),
    ("Cloudflare Origin Key", "v1" + ".0-" + some(24, HEX) + "-" + some(146, HEX), "{}"),
    ("Crates Token", "ci" + "o" + some(32), "{}"),
    ("Database Password", some(14), "PGPASSWORD={} psql"),
    ("Databricks Token", "da" + "pi" + some(32, HEX), "{}"),
    ("DeepSeek Key", "s" + "k-" + some(32, HEX), "{}"),
    ("DigitalOcean Token", "dop" + "_v1_" + HEX, "{}"),
    ("Discord Webhook", some(68), "https://discord.com/api/webhooks/123456789012345678/{}"),
    ("Docker Token", "dckr" + "_pat_" + some(27), "{}"),
    ("Doppler Token", "dp" + ".pt." + some(43), "{}"),
    ("Dynatrace Token", "dt0" + "c01." + some(24, HEX.upper()) + "." + HEX.upper(), "{}"),
    ("ElevenLabs Key", "s" + "k_" + some(48, HEX), "{}"),
    ("Figma Token", "fi" + "gd_" + some(40), "{}"),
    ("Fireworks Key", "f" + "w_" + some(24), "{}"),
    ("Fly Token", "fm" + "2_" + some(120), "{}"),
    ("GitHub Token", "git" + "hub_pat_" + some(82), "{}"),
    ("GitHub Token", "gh" + "s_" + some(36), "{}"),
    ("GitLab Token", "gl" + "rt-" + some(20), "{}"),
    ("Google OAuth Secret", "ya" + "29." + some(100), "{}"),
    ("Google OAuth Secret", "1/" + "/0" + some(60), "{}"),
    ("Grafana Token", "gl" + "sa_" + some(32) + "_" + some(8, HEX), "{}"),
    ("Heroku Key", "HR" + "KU-" + some(60), "{}"),
    ("Honeycomb Key", "hca" + "ik_" + some(58, HEX), "{}"),
    ("Hugging Face Token", "api" + "_org_" + some(34), "{}"),
    ("Jina Key", "ji" + "na_" + some(60), "{}"),
    ("LangSmith Key", "lsv2" + "_pt_" + some(32, HEX) + "_" + some(10, HEX), "{}"),
    ("Langfuse Key", "sk-" + "lf-" + UUID, "{}"),
    ("Linear Key", "lin" + "_api_" + some(40), "{}"),
    ("Mailgun Key", "ke" + "y-" + some(32, HEX), "{}"),
    ("Mapbox Secret", "sk" + ".eyJ" + some(60) + "." + some(22), "{}"),
    ("Microsoft Teams Webhook", some(120), "https://a.webhook.office.com/webhookb2/{}"),
    ("NPM Token", some(40), "//registry.invalid/:_authToken={}"),
    ("NVIDIA Key", "nva" + "pi-" + some(64), "{}"),
    ("Netlify Token", "nf" + "p_" + some(36), "{}"),
    ("New Relic Key", "NR" + "AK-" + some(27, HEX.upper()), "{}"),
    ("Notion Token", "nt" + "n_" + some(46), "{}"),
    ("Notion Token", "sec" + "ret_" + some(43), "{}"),
    ("NuGet Key", "oy" + "2" + some(43, HEX), "{}"),
    ("OpenAI Token", "s" + "k-" + some(20) + "T3Blbk" + "FJ" + some(20), "{}"),
    ("1Password Token", "op" + "s_eyJ" + some(200), "{}"),
    ("PayPal Token", "access_token$" + "production$" + some(16, HEX) + "$" + some(32, HEX), "{}"),
    ("Perplexity Key", "pp" + "lx-" + some(48), "{}"),
    ("Pinecone Key", "pc" + "sk_" + some(6) + "_" + some(63), "{}"),
    ("Plaid Token", "access-" + "production-" + UUID, "{}"),
    ("PlanetScale Token", "pscale" + "_tkn_" + some(43), "{}"),
    ("PostHog Key", "ph" + "x_" + some(47), "{}"),
    ("Postman Key", "PM" + "AK-" + some(24, HEX) + "-" + some(34, HEX), "{}"),
    ("Pulumi Token", "pu" + "l-" + some(40, HEX), "{}"),
    ("Razorpay Key", "rzp" + "_live_" + some(14), "{}"),
    ("Replicate Token", "r" + "8_" + some(37), "{}"),
    ("Resend Key", "r" + "e_" + some(8) + "_" + some(24), "{}"),
    ("RubyGems Key", "ruby" + "gems_" + some(48, HEX), "{}"),
    ("Sentry Token", "snt" + "rys_" + some(120), "{}"),
    ("Shopify Token", "shp" + "at_" + some(32, HEX), "{}"),
    ("Slack Token", "xa" + "pp-1-A0123456789-1234567890123-" + HEX, "{}"),
    ("Slack Token", "xo" + "xe.xoxp-1-" + some(120), "{}"),
    ("Square OAuth Secret", "sq0" + "atp-" + some(22), "{}"),
    ("Stripe Access Key", "sk" + "_test_" + some(24), "{}"),
    ("Stripe Access Key", "wh" + "sec_" + some(32), "{}"),
    ("Supabase Key", "sb" + "p_" + some(40, HEX), "{}"),
    ("Supabase Key", "sb_" + "secret_" + some(31), "{}"),
    ("Tailscale Key", "ts" + "key-auth-" + some(11) + "-" + some(32), "{}"),
    ("Tavily Key", "tv" + "ly-dev-" + some(32), "{}"),
    ("Terraform Token", some(14) + ".atl" + "asv1." + some(67), "{}"),
    ("Together Key", "tgp" + "_v1_" + some(43), "{}"),
    ("URL Token", some(32), "https://a.invalid/b?api_key={}&c=1"),
    ("Vault Token", "hv" + "s." + some(90), "{}"),
    ("Vercel Token", "vc" + "k_" + some(56), "{}"),
    ("Yandex Key", "AQ" + "VN" + some(36), "{}"),
)
"""Formats of secrets, put together here so that no scanner takes one for a leaked secret."""


def in_words(kind: str) -> str:
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
    return "".join(_planted_line(line, words) for line in raw.splitlines(keepends=True))


def _planted_line(line: str, words: str) -> str:
    try:
        return json.dumps(planted(json.loads(line), words)) + "\n"
    except ValueError:
        return line
