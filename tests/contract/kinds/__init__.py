"""Kinds of constructs that a fix must look through, each as models that it would harm and as harmless twins.

``python3 -m tests.contract.kinds`` lets gclint repair all of them, trains each before and after, and compares
what fails with ``known.txt``, which may only become shorter.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.contract.kinds import (
    around,
    caches,
    containers,
    forwards,
    inplace,
    keywords,
    parts,
    receivers,
    removed,
    state,
    words,
)
from tests.contract.kinds.models import Generator

KINDS: Mapping[str, Generator] = {
    "caches": caches.pairs,
    "inplace": inplace.pairs,
    "around": around.pairs,
    "keywords": keywords.pairs,
    "containers": containers.pairs,
    "parts": parts.pairs,
    "state": state.pairs,
    "forwards": forwards.pairs,
    "receivers": receivers.pairs,
    "removed": removed.pairs,
    "words": words.pairs,
}
