"""The call for one more token, as generation makes it with the cache that a model has returned."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.torch


def test_the_next_call_has_one_token_more_and_the_cache() -> None:
    import torch

    from gclint.verify.worker.examination.tensors import continued

    tokens, images, cache = torch.tensor([[1, 2, 3]]), torch.ones(1, 4), [torch.ones(2)]
    inputs = {"input_ids": tokens, "attention_mask": torch.ones(1, 3), "pixel_values": images}
    following = continued(inputs, {"logits": torch.ones(1), "past_key_values": cache})
    assert following is not None
    assert following.pop("input_ids").tolist() == [[3]]
    assert following == {"pixel_values": images, "past_key_values": cache}


def test_without_tokens_or_a_cache_there_is_no_next_call() -> None:
    import torch

    from gclint.verify.worker.examination.tensors import continued

    cache = {"past_key_values": [torch.ones(2)]}
    assert continued({"pixel_values": torch.ones(1, 4)}, cache) is None
    assert continued({"input_ids": None}, cache) is None
    assert continued({"input_ids": torch.ones(1, 3)}, {"past_key_values": None}) is None
    assert continued({"input_ids": torch.ones(1, 3)}, torch.ones(1)) is None
