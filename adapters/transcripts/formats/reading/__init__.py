"""What readers of several formats share: taking fields, and saying what an entry says."""
