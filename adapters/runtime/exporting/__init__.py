"""Takes sessions out of a store, in the formats of other agents."""
