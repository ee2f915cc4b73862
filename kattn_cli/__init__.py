"""kattn: kernel views of attention, trained, evaluated, attacked and measured under one protocol."""

__version__ = "0.1.0"
