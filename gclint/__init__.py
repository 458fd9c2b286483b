"""gclint finds and repairs what breaks gradient checkpointing in Hugging Face-style models."""

__version__ = "0.1.0"
