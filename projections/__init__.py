"""Folds events into read models, which describe the log but decide nothing."""
