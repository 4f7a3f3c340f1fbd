"""How each reference document has its summaries asked for and put together."""
