"""What two texts of one model must agree in."""

from __future__ import annotations

import hashlib

import torch

from gclint.verify.worker.examination.run import Run
from gclint.verify.worker.protocol import Fingerprint


def fingerprint(run: Run) -> Fingerprint:
    """Return what the first step of a run computed."""
    step = run.steps[0]
    digest = hashlib.sha256(repr(step.loss).encode())
    norms = {}
    for name, gradient in sorted(step.gradients.items()):
        digest.update(name.encode())
        if gradient is not None:
            dense = gradient.to_dense() if gradient.is_sparse else gradient
            digest.update(dense.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
            norms[name] = float(dense.float().norm()) if not dense.is_complex() else float(dense.abs().norm())
    return Fingerprint(run.conditions.scenario.name, digest.hexdigest(), step.loss, norms)
