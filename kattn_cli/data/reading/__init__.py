"""How files are found, downloaded, read and decoded."""
