"""Recipes: what is trained, on what, with which attention, and how. Never imports torch."""
