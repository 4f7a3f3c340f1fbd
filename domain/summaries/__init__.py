"""Writers and judges of the text that stands for what left a view."""
