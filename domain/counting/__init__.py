"""How large things are in tokens: estimates, exact counts, images, and what providers report."""
