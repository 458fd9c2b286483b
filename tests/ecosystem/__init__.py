"""gclint over real releases of transformers."""
