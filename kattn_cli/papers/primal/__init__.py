"""Primal-Attention: its numbers, tables and claims."""
