"""Recognizes errors that sound like overflows but are about something else."""

import re
from typing import Final

RATE_OR_QUOTA_PATTERN: Final = re.compile(
    r"rate[ _-]?limit|tokens? per (?:min|hour|day|second)|\bT[PK][MD]\b|\bRP[MSD]\b"
    r"|too many requests|throttl|\bquota\b|wait (?:a moment )?(?:before|and) try"
    r"|try again (?:in|later)"
    r"|(?:more|add|purchase|insufficient|available) (?:credits?|balance|funds)|billing"
    r"|monthly (?:spending )?limit|overloaded|capacity (?:exceeded|available)|extra usage",
    re.IGNORECASE,
)
"""Rates, quota, money and load: stronger evidence than any words about length."""

OTHER_SIZES_PATTERN: Final = re.compile(
    r"output|completion tokens|max_(?:new_|completion_|total_)?tokens|maximum tokens|maxoutput"
    r"|max tokens (?:value|must|should)|tokens? to generate|\bgenerat(?:e|ed|ion)\b"
    r"|image|pdf|pages?\b|file|pixels|\d ?[kmg]i?b\b|bytes|payload|entity too large"
    r"|array|string too long|embedding|tools?\b|schema|must be at least|too small",
    re.IGNORECASE,
)
"""Limits of answers, images, files: weaker than a specific wording, stronger than a weak one."""
