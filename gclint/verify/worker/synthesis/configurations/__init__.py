"""Tiny configurations, made by rule from configuration classes."""
