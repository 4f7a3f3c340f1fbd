"""Which messages leave by their worth, and which results are shown shortened."""
