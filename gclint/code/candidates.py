"""Finds files that look like models: those that a folder may contain beside those that are checked.

Half of the third-party files with a stack of blocks and a checkpoint call have other names. Finding them
takes a search for a few words, in files whose names do not already say that they contain something else.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

from gclint.facts import search

_TESTS = ("test_*.py", "*_test.py", "tests.py", "conftest.py")
_ASIDE = frozenset(("tests", "test", "build", "dist", "site-packages", ".eggs"))
# Files beside the models in packages like transformers; most of the code would be in these.
_NO_MODELS = (
    "__init__.py",
    "configuration_*.py",
    "convert_*.py",
    "feature_extraction_*.py",
    "image_processing_*.py",
    "processing_*.py",
    "setup.py",
    "tokenization_*.py",
    "video_processing_*.py",
)
_STACK = re.compile(rb"\bModuleList\b|\bSequential\(\s*\*")
_CHECKPOINTING = re.compile(
    rb"\bGradientCheckpointingLayer\b"
    rb"|\b_?supports_gradient_checkpointing\b"
    rb"|(?<!\bdef )(?:\bcheckpoint|\bcheckpoint_sequential|\b_gradient_checkpointing_func)\("
)
MODELING_FILES = ("modeling_*.py", "modular_*.py")
_OF_SCRIPTS = (
    "checkpointing",
    "use_reentrant",
    "utils.checkpoint",
    "utils import checkpoint",
    "kbit_training",
)
"""Without any of these words, a script does nothing that rules about scripts look at."""
_READ = 4_000_000
"""Files with more characters are data, whatever their names."""


def is_test_or_build(folder: str) -> bool:
    """Return whether a folder of this name contains tests or build output."""
    return folder in _ASIDE or folder.endswith(".egg-info")


def is_test(name: str) -> bool:
    """Return whether a file of this name is a test."""
    return any(fnmatchcase(name, pattern) for pattern in _TESTS)


def may_look_like_model(name: str) -> bool:
    """Return whether a file of this name is worth reading."""
    return (
        name.endswith(".py")
        and not is_test(name)
        and not any(fnmatchcase(name, pattern) for pattern in _NO_MODELS)
    )


def is_modeling(name: str) -> bool:
    """Return whether a file has the name of a modeling file."""
    return any(fnmatchcase(name, pattern) for pattern in MODELING_FILES)


def may_train(name: str, text: str) -> bool:
    """Return whether a file may be a script that trains a model with checkpointing."""
    return not is_modeling(name) and any(word in text for word in _OF_SCRIPTS)


def looks_like_model(path: Path) -> bool:
    """Return whether a file has a stack and mentions checkpointing; False for an unreadable one."""
    try:
        text = search(path)[:_READ]
    except OSError:
        return False
    return _STACK.search(text) is not None and _CHECKPOINTING.search(text) is not None
