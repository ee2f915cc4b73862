"""TSSA: whether the subspaces that it learns are incoherent (ToST, D.4)."""
