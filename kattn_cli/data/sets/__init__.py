"""Data sets, one file or folder each."""
