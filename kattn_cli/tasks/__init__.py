"""Kinds of data, one folder each: how it is loaded, modelled, trained on, evaluated and printed."""
