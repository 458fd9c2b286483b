"""How a place in the code is understood: the same knowledge that rules ask, put in words."""
