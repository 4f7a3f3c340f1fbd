"""A compaction said in the words of the program that its policy comes from: records and events."""
