"""Images that are classified."""
