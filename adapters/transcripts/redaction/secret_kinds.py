"""Defines the kinds of secrets, and the pattern of each.

Most patterns come from detect-secrets. Patterns that it lacks, that are incomplete or that are slow
are defined here. Its heuristics, by entropy or by variable names, are not used: in agents' sessions
they find thousands of hashes, ids and lines of test code, and replacing those makes a session
useless.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from ....domain.errors import ImportFileError

_KEY_END = r"(?:-----END [A-Z0-9 ]{0,40}-----)"


@dataclass(frozen=True, slots=True)
class SecretKind:
    """A kind of secret: `group` of the match is the secret, 0 is all of it."""

    name: str
    hints: tuple[str, ...]
    """Words; only a text with one of them is searched."""
    pattern: re.Pattern[str]
    group: int = 0


DETECT_SECRETS_KINDS = (
    # Module, class, indexes of its patterns, and words of which all secrets hold one.
    ("artifactory", "ArtifactoryDetector", (0,), "AKC"),
    ("aws", "AWSKeyDetector", (0,), "A3T ABIA ACCA AKIA ASIA"),
    ("azure_storage_key", "AzureStorageKeyDetector", (0,), "AccountKey="),
    ("discord", "DiscordBotTokenDetector", (0,), "."),
    ("github_token", "GitHubTokenDetector", (0,), "ghp_ gho_ ghu_ ghs_ ghr_"),
    ("gitlab_token", "GitLabTokenDetector", tuple(range(7)), "gl GR1348941"),
    ("mailchimp", "MailchimpDetector", (0,), "-us"),
    ("pypi_token", "PypiTokenDetector", (0, 1), "pypi-"),
    ("sendgrid", "SendGridDetector", (0,), "SG."),
    ("slack", "SlackDetector", (0, 1), "xox XOX hooks.slack.com"),
    ("square_oauth", "SquareOAuthDetector", (0,), "sq0csp-"),
    ("stripe", "StripeDetector", (0,), "k_live_"),
    ("telegram_token", "TelegramBotTokenDetector", (0,), ":"),
    ("twilio", "TwilioKeyDetector", (0, 1), "AC SK"),
)
"""IBM's and SoftLayer's patterns need no prefix, and find ids."""

_TOKENS = (
    # Name, prefix of such a token, and the rest.
    ("Age Secret Key", "AGE-SECRET-KEY-1", r"[0-9A-Z]{58}"),
    ("Airtable Token", "pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    ("Alibaba Access Key", "LTAI", r"[A-Za-z0-9]{20,26}"),
    ("Amazon Bedrock Key", "ABSK", r"[A-Za-z0-9+/=]{100,}"),
    ("Anthropic Key", "sk-ant-", r"[a-z0-9]{2,12}-[A-Za-z0-9_-]{20,}"),
    ("Atlassian Token", "ATATT3 ATCTT3 ATBB", r"[A-Za-z0-9_=-]{28,}"),
    ("Brevo Key", "xkeysib-", r"[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    ("Cerebras Key", "csk-", r"[a-z0-9]{40,}"),
    ("Clojars Token", "CLOJARS_", r"[0-9a-f]{60}"),
    ("Cloudflare Origin Key", "v1.0-", r"[0-9a-f]{24}-[0-9a-f]{140,}"),
    ("Crates Token", "cio", r"[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    ("Databricks Token", "dapi", r"[0-9a-f]{32}"),
    ("DeepSeek Key", "sk-", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("DigitalOcean Token", "dop_v1_ doo_v1_ dor_v1_", r"[0-9a-f]{64}"),
    ("Docker Token", "dckr_pat_ dckr_oat_", r"[A-Za-z0-9_-]{27,}"),
    ("Doppler Token", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", r"[A-Za-z0-9_.]{40,}"),
    ("Dynatrace Token", "dt0c01. dt0s01.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    ("ElevenLabs Key", "sk_", r"[0-9a-f]{48}"),
    ("Figma Token", "figd_ figo_", r"[A-Za-z0-9_-]{36,}"),
    ("Fireworks Key", "fw_", r"[A-Za-z0-9]{22,24}(?![A-Za-z0-9_])"),
    ("Fly Token", "fm1r_ fm2_ fo1_", r"[A-Za-z0-9+/=_-]{40,}"),
    ("GitHub Token", "github_pat_", r"[A-Za-z0-9_]{50,}"),
    ("Google API Key", "AIza", r"[A-Za-z0-9_-]{35}"),
    ("Google OAuth Secret", "GOCSPX-", r"[A-Za-z0-9_-]{28}"),
    ("Google OAuth Secret", "ya29.", r"[A-Za-z0-9_-]{20,}"),
    ("Google OAuth Secret", "1//0", r"[A-Za-z0-9_-]{40,}"),
    ("Grafana Token", "glsa_", r"[A-Za-z0-9]{32}_[0-9a-fA-F]{8}"),
    ("Grafana Token", "glc_eyJ", r"[A-Za-z0-9+/=]{40,}"),
    ("Groq Key", "gsk_", r"[A-Za-z0-9]{40,}"),
    ("Heroku Key", "HRKU-", r"[A-Za-z0-9_-]{36,}"),
    ("Honeycomb Key", "hcaik_", r"[a-z0-9]{58}"),
    ("Hugging Face Token", "hf_ api_org_", r"[A-Za-z0-9]{30,}"),
    ("Jina Key", "jina_", r"[A-Za-z0-9_-]{50,}"),
    ("LangSmith Key", "lsv2_pt_ lsv2_sk_", r"[0-9a-f]{32}_[0-9a-f]{10}"),
    ("Langfuse Key", "sk-lf-", r"[0-9a-f]{8}-[0-9a-f-]{27}"),
    ("Linear Key", "lin_api_ lin_oauth_", r"[A-Za-z0-9]{40,}"),
    ("Mailgun Key", "key-", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("Mapbox Secret", "sk.eyJ", r"[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}"),
    ("NPM Token", "npm_", r"[A-Za-z0-9]{36}"),
    ("NVIDIA Key", "nvapi-", r"[A-Za-z0-9_-]{60,}"),
    ("Netlify Token", "nfp_ nfc_ nfo_", r"[A-Za-z0-9]{36,}"),
    ("New Relic Key", "NRAK-", r"[A-Z0-9]{27}"),
    ("Notion Token", "ntn_", r"[A-Za-z0-9]{43,}"),
    ("Notion Token", "secret_", r"[A-Za-z0-9]{43}(?![A-Za-z0-9])"),
    ("NuGet Key", "oy2", r"[a-z0-9]{43}(?![a-z0-9])"),
    ("OpenAI Token", "sk-proj- sk-svcacct- sk-admin-", r"[A-Za-z0-9_-]{20,}"),
    ("OpenAI Token", "sk-", r"(?:[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}|[A-Za-z0-9]{48})"),
    ("OpenRouter Key", "sk-or-v1-", r"[0-9a-f]{64}"),
    ("1Password Token", "ops_eyJ", r"[A-Za-z0-9_=-]{60,}"),
    ("Perplexity Key", "pplx-", r"[A-Za-z0-9]{40,}"),
    ("Pinecone Key", "pcsk_", r"[A-Za-z0-9]{4,8}_[A-Za-z0-9]{50,}"),
    ("PlanetScale Token", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[A-Za-z0-9_=.-]{32,}"),
    ("PostHog Key", "phx_", r"[A-Za-z0-9]{43,}"),
    ("Postman Key", "PMAK-", r"[0-9a-f]{24}-[0-9a-f]{34}"),
    ("Pulumi Token", "pul-", r"[0-9a-f]{40}"),
    ("Razorpay Key", "rzp_live_", r"[A-Za-z0-9]{14,}"),
    ("Replicate Token", "r8_", r"[A-Za-z0-9]{37}"),
    ("Resend Key", "re_", r"[A-Za-z0-9]{8}_[A-Za-z0-9]{24}(?![A-Za-z0-9])"),
    ("RubyGems Key", "rubygems_", r"[0-9a-f]{48}"),
    ("Sentry Token", "sntrys_ sntryu_", r"[A-Za-z0-9+/=_]{60,}"),
    ("Shopify Token", "shpat_ shpca_ shppa_ shpss_", r"[0-9a-fA-F]{32}"),
    ("Slack Token", "xapp-", r"[0-9]-[A-Z0-9]{8,}-[0-9]{8,}-[0-9a-f]{32,}"),
    ("Slack Token", "xoxe- xoxe.xoxp- xoxe.xoxb- xoxc- xoxd-", r"[A-Za-z0-9%+/=-]{20,}"),
    ("Square OAuth Secret", "sq0atp-", r"[A-Za-z0-9_-]{22}"),
    ("Stripe Access Key", "sk_test_ rk_test_ whsec_", r"[A-Za-z0-9+/=]{24,}"),
    ("Supabase Key", "sbp_", r"[0-9a-f]{40}"),
    ("Supabase Key", "sb_secret_", r"[A-Za-z0-9_-]{31,}"),
    (
        "Tailscale Key",
        "tskey-",
        r"(?:auth|api|client|scim|webhook)-[A-Za-z0-9]{8,}-[A-Za-z0-9]{20,}",
    ),
    ("Tavily Key", "tvly-", r"(?:dev-|prod-)?[A-Za-z0-9]{32}"),
    ("Together Key", "tgp_v1_", r"[A-Za-z0-9_-]{43}"),
    ("Vault Token", "hvs. hvb. hvr.", r"[A-Za-z0-9_-]{24,}"),
    ("Vercel Token", "vck_ vcp_ vercel_blob_rw_", r"[A-Za-z0-9_]{40,}"),
    ("Yandex Key", "AQVN", r"[A-Za-z0-9_-]{35,38}(?![A-Za-z0-9_-])"),
    ("xAI Key", "xai-", r"[A-Za-z0-9]{60,}"),
)

_OPAQUE_VALUE = r"(?=[A-Za-z_~+/=-]{0,80}[0-9])[A-Za-z0-9_~+/=-]{16,}"
"""Looks like a key, not like the name of a variable that holds one."""


def _make_assignment(names: str, value: str = _OPAQUE_VALUE) -> str:
    """Return the pattern of a value after one of the names, as in a header or a setting."""
    return rf"(?i:{names})\\?[\"']?\s{{0,3}}[:=,]\s{{0,3}}\\?[\"']?({value})"


_SHAPES = {
    ("API Key Header", "-key -Key -KEY"): _make_assignment(r"\b(?:x-|xi-|x-goog-)?api-key"),
    ("Auth Token Header", "-token -Token -TOKEN"): (
        _make_assignment(r"\b(?:x-auth|x-vault|x-gitlab|private|job)-token")
    ),
    ("AWS Secret Key", "ey EY"): (
        _make_assignment("secret_?access_?key", "[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])")
    ),
    ("AWS Session Token", "oken OKEN"): _make_assignment(
        "session_?token", "[A-Za-z0-9/+]{100,}={0,2}"
    ),
    ("Azure Shared Access Key", "AccessKey"): (
        _make_assignment("SharedAccessKey", "[A-Za-z0-9+/]{43,}={0,2}")
    ),
    ("Database Password", "PGPASSWORD MYSQL_PWD REDISCLI_AUTH"): (
        _make_assignment("PGPASSWORD|MYSQL_PWD|REDISCLI_AUTH", r"[^\s'\"\\$<>{}]{3,200}")
    ),
    ("NPM Token", "_auth"): _make_assignment("_auth(?:Token)?"),
    ("Authorization Header", "uthorization UTHORIZATION"): (
        r"(?i:authorization)\\?[\"']?\s{0,3}[:=]\s{0,3}\\?[\"']?"
        r"(?i:bearer|basic|token|apikey|ssws|bot) ([A-Za-z0-9._~+/=-]{16,})"
    ),
    ("Azure Client Secret", "8Q~"): r"(?<![\w~.-])[\w~.-]{3}8Q~[\w~.-]{31,34}",
    ("Azure DevOps Token", "AZDO"): r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}",
    ("Azure Shared Access Signature", "sig="): r"[?&;]sig=([A-Za-z0-9%+/]{40,}(?:=|%3D){0,2})",
    ("Basic Auth Credentials", "://"): (
        r"://[^\s/:@'\"<>{}$*%]{0,99}:([^\s/@'\"<>{}$*%\\]{3,200})@"
    ),
    ("Basic Auth Credentials", "curl"): (
        r"\bcurl [^\n]{0,200}?(?:-u|--user)[ =]?['\"]?[^\s:'\"$]{1,64}:([^\s'\"$]{3,200})"
    ),
    ("Basic Auth Credentials", "machine"): (
        r"\bmachine \S{1,99}\s{1,9}login \S{1,99}\s{1,9}password (\S{3,200})"
    ),
    ("Discord Webhook", "/api/webhooks/"): r"/api/webhooks/[0-9]{17,20}/([A-Za-z0-9_-]{60,})",
    ("JSON Web Token", ".eyJ"): (
        r"eyJ[A-Za-z0-9_-]{10,4000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,4000}"
    ),
    ("Microsoft Teams Webhook", "webhook.office.com"): (
        r"webhook\.office\.com/webhookb2/([A-Za-z0-9@/-]{80,})"
    ),
    ("PayPal Token", "access_token$production$"): (
        r"access_token\$production\$[0-9a-z]{16}\$[0-9a-f]{32}"
    ),
    ("Plaid Token", "access-production-"): r"access-production-[0-9a-f]{8}-[0-9a-f-]{27}",
    ("Private Key", "PRIVATE"): (
        # Up to its end, or up to where it was cut off.
        r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
        rf"(?:[\s\S]{{0,16000}}?{_KEY_END}|(?:(?:\s|\\[nr]|[0-9]{{1,6}}[\t→]){{0,40}}"
        r"[A-Za-z0-9+/=]{16,}){1,400})"
    ),
    ("Terraform Token", ".atlasv1."): r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}",
    ("URL Token", "key= oken="): rf"[?&](?:api_?key|access_token|auth_token)=({_OPAQUE_VALUE})",
}
"""The patterns by name and words of which a text must hold one; a group, if any, is the secret."""


@cache
def list_secret_kinds() -> tuple[SecretKind, ...]:
    """Return all kinds, outer ones first. Raises ImportFileError without the extra."""
    own = sorted(_list_own(), key=lambda kind: kind.name != "Private Key")
    return (*own, *_list_detect_secrets())


def _list_own() -> Iterator[SecretKind]:
    for name, prefixes, rest in _TOKENS:
        begins = tuple(prefixes.split())
        pattern = re.compile(rf"(?:{'|'.join(map(re.escape, begins))}){rest}")
        yield SecretKind(name, begins, pattern)
    for (name, words), shape in _SHAPES.items():
        pattern = re.compile(shape)
        yield SecretKind(name, tuple(words.split()), pattern, pattern.groups)


def _list_detect_secrets() -> Iterator[SecretKind]:
    for module, name, patterns, words in DETECT_SECRETS_KINDS:
        try:
            detector = getattr(import_module(f"detect_secrets.plugins.{module}"), name)
        except ModuleNotFoundError:
            raise ImportFileError(
                "--redact needs one thing more: pip install 'cutbank[redact]'"
            ) from None
        every = tuple(detector.denylist)
        for number in patterns:
            yield SecretKind(detector.secret_type, tuple(words.split()), every[number])
