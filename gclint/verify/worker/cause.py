"""What makes checkpointing fail, in words that the worker, the host and the rules share.

A module of its own, since rules need it in every run of the linter, and the rest of the protocol in none.
"""

from __future__ import annotations

from enum import Enum


class Cause(str, Enum):
    """What a failure comes from; each rule knows which of these it repairs."""

    SWITCHES = "switches"
    """An override switches checkpointing on or off for a part of the model only."""
    NOTHING_TO_SWITCH = "nothing to switch"
    """The class says that it supports checkpointing, and no module in it does."""
    NOT_A_LAYER = "not a checkpointing layer"
    """Blocks are not recomputed, and do not inherit from the base class that would do so."""
    NOTHING_RECOMPUTED = "nothing recomputed"
    """Blocks are not recomputed although they inherit from that base class."""
    NOTHING_SAVED = "nothing saved"
    """Blocks are recomputed, and as much is kept as without."""
    NESTED_CHECKPOINT = "nested checkpoint"
    """A block is recomputed within a checkpoint that is recomputed itself."""
    POSITIONAL_CACHE = "positional cache"
    """A cache is passed by position, where the base class cannot switch it off."""
    WRITTEN_CACHE = "written cache"
    """A cache that is passed in another way is written to a second time."""
    KEYWORD_ACTIVATION = "keyword activation"
    """A tensor that requires grad is passed by keyword."""
    CONTAINED_ACTIVATION = "contained activation"
    """A tensor that requires grad is passed inside of a container."""
    NESTED_OUTPUT = "nested output"
    """A block returns tensors in a container inside of a container."""
    NO_INPUT_GRADIENT = "no input gradient"
    """No input of the first blocks requires grad."""
    RANDOM_NUMBERS = "random numbers"
    """A block draws random numbers from elsewhere than torch."""
    DICTIONARY = "dictionary"
    """A block changes a dictionary that it is passed."""
    STATE = "state"
    """A block sets attributes while it runs."""
    STATISTICS = "statistics"
    """Running statistics are updated a second time."""
    LEAF = "leaf"
    """The model changes in place what its embeddings return."""
    HOOK = "hook"
    """`enable_input_require_grads` does not suit what the embeddings return."""
    DISAGREEMENT = "disagreement"
    """The recomputation does something else than the forward pass, and none of the above explains it."""
