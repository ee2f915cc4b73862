"""What attention computes, and what it costs."""
