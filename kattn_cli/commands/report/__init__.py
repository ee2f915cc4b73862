"""``kattn report``: where its runs and tables come from, what it draws, and what it writes."""
