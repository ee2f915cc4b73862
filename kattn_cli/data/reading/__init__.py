"""Reading of data sets: how files are found, downloaded, read and decoded."""
