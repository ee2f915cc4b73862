"""Primal-Attention: its objective, and whether its scores solve the dual problem."""
