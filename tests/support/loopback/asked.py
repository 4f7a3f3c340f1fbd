"""A provider behind the loopback, asked by the summariser `llm`."""

import asyncio
from dataclasses import dataclass
from typing import Any

from cutbank.adapters.models.summarizers.llm_summarizer import LlmSummarizer
from cutbank.domain.summaries.summarizer import Draft, Material

from .answers import Answer, in_turn
from .conversation import MATERIAL
from .providers import Provider
from .server import Loopback


@dataclass(frozen=True)
class Asked:
    """Whom a test asks, and the server that answers in their place."""

    provider: Provider
    server: Loopback

    def llm(self, **options: Any) -> LlmSummarizer:
        base_url = self.provider.base_url(self.server.url)
        return LlmSummarizer(self.provider.model, base_url=base_url, **options)

    def draft(self, *answers: Answer, material: Material = MATERIAL, **options: Any) -> Draft:
        """What the summariser makes of these answers, or of what the server's script says."""
        if answers:
            self.server.script = in_turn(*answers)
        return asyncio.run(self.llm(**options).summarize(material))
