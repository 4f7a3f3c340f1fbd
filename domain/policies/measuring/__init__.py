"""Measures messages: by the store's token counts, or by the length of their texts."""
