"""Whether each layer of a model has a slot of its own in a cache that is empty when the model runs."""
