"""The model of the code: what a file means to the one interpreter that reads it."""
