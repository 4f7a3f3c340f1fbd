"""Wire formats, one file each, both directions of a format on one page."""
