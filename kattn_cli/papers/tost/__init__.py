"""ToST: its numbers, tables and claims."""
