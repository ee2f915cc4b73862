"""How far gross outliers among the tokens move what attention gives to all others."""
