"""Facts and decisions: pure, with no database, clock, network or tokenizer."""
