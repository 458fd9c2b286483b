"""Rules of the user's own: modules that the user names, loaded, and held to what gclint expects of a rule."""
