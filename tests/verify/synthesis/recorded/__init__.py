"""What each hint makes of the errors that it is there for: a module of cases for each module of hints."""
