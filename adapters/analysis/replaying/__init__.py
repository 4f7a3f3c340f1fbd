"""Sessions of a store, run through again under other decisions."""
