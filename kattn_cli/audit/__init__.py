"""Whether the equations of the papers hold in trained models."""
