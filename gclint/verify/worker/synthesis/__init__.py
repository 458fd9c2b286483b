"""Tiny configurations, models and inputs, made by rule from a model's own classes."""
