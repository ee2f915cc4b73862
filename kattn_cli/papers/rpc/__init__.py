"""RPC-Attention: its numbers, tables and claims."""
