"""TSSA: what each layer compresses (ToST, §4.1)."""
