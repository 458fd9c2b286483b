"""Which legacy branches can go: the condition, the two sides, and what enables them."""

from __future__ import annotations

import pytest

from tests.decisions.outside import FILE, LAYER, Outside, Pair, decided, found
from tests.decisions.toy import BRANCH, FLAG, STACK, block, model, toy

_SAFE = [found(LAYER, "safe")]
_ON = "self._gradient_checkpointing_func(layer.__call__, hidden_states, mask)"
_OFF = "layer(hidden_states, mask)"
_FLAG_TEST = "if self.gradient_checkpointing and self.training"
_ITEMS = BRANCH.replace("hidden_states, mask)", "hidden_states, mask[0])", 1).replace(
    _OFF, "layer(hidden_states, mask[0] if mask is not None else None)"
)
_SCALED = """
for layer in self.layers:
    if self.gradient_checkpointing and self.training and not scale:
        hidden_states = self._gradient_checkpointing_func(layer.__call__, hidden_states, mask, False)
    else:
        hidden_states = layer(hidden_states, mask, scale)
"""


def _branch(loop: str = BRANCH, init: str = "", takes: str = "hidden_states, mask=None", **more: str) -> str:
    return toy(block(takes=takes), model(loop, takes=takes, init=f"{STACK}\n{FLAG}\n{init}", **more))


def _none(*kinds: str) -> list[str]:
    return [found(LAYER, "none", *kinds)]


def _unsafe(*kinds: str) -> list[str]:
    return [found(LAYER, "unsafe", *kinds)]


test_branches = decided(
    Pair(
        "a branch",
        _branch(),
        (
            "    if self.gradient_checkpointing and self.training:",
            "    if self.gradient_clipping and self.training:",
        ),
        _SAFE,
        _none("no branch of its own"),
    ),
    Pair(
        "the flag of something else",
        _branch(),
        ("if self.gradient_checkpointing and", "if self.config.gradient_checkpointing and"),
        _SAFE,
        _none("another condition"),
    ),
    Pair(
        "the flag and more",
        _branch(),
        ("and self.training:", "and self.training and mask:"),
        _SAFE,
        _none("another condition"),
    ),
    Pair(
        "the flag or the mode",
        _branch(),
        ("gradient_checkpointing and self.training:", "gradient_checkpointing or self.training:"),
        _SAFE,
        _none("another condition"),
    ),
    Pair(
        "the flag alone",
        _branch(),
        (" and self.training:", ":"),
        _SAFE,
        _unsafe("checkpoints in evaluation", "checkpoints in evaluation"),
    ),
    Pair(
        "the flag by its name",
        _branch(
            BRANCH.replace("self.gradient_checkpointing", "getattr(self, 'gradient_checkpointing', False)")
        ),
        ("checkpointing', False)", "checkpointing', True)"),
        _SAFE,
        _none("another condition"),
    ),
    Pair(
        "the mode by gradients",
        _branch(BRANCH.replace("self.training", "torch.is_grad_enabled()")),
        ("torch.is_grad_enabled()", "torch.is_grad_enabled(1)"),
        _unsafe("checkpoints in evaluation", "checkpoints in evaluation"),
        _none("another condition"),
    ),
    Pair(
        "there is another side",
        _branch(),
        ("    else:\n                hidden_states = layer(hidden_states, mask)\n", ""),
        _SAFE,
        _none("no else"),
    ),
    Pair(
        "`elif`",
        _branch(BRANCH.replace("    if self", "    if mask:\n        pass\n    elif self")),
        ("    pass\n            elif self", "    pass\n            if self"),
        _none("elif"),
        _SAFE,
    ),
    Pair(
        "the sides are the other way around",
        _branch(
            BRANCH.replace(
                "if self.gradient_checkpointing and self.training",
                "if not (self.gradient_checkpointing and self.training)",
            )
            .replace(_ON, "ON")
            .replace(_OFF, _ON)
            .replace("ON", _OFF, 1)
        ),
        ("if not (self", "if (self"),
        _SAFE,
        _none("no branch of its own"),
    ),
    Pair(
        "the same arguments",
        _branch(),
        ("layer.__call__, hidden_states, mask)", "layer.__call__, hidden_states, self.mask)"),
        _SAFE,
        [found("mismatched-checkpoint-branches", "none", "author"), *_none("branches differ")],
    ),
    Pair(
        "one side says nothing",
        _branch(),
        ("layer.__call__, hidden_states, mask)", "layer.__call__, hidden_states)"),
        _SAFE,
        [found("mismatched-checkpoint-branches", "none", "author"), *_unsafe("call changes")],
    ),
    Pair(
        "other statements",
        _branch(),
        (
            "    else:\n                hidden_states = layer",
            "    else:\n                mask = 1\n                hidden_states = layer",
        ),
        _SAFE,
        _none("branches differ"),
    ),
    Pair(
        "another use of the result",
        _branch(),
        ("            hidden_states = " + _OFF, "            hidden_states = " + _OFF + "[0]"),
        _SAFE,
        _none("branches differ"),
    ),
    Pair(
        "another layer",
        _branch(),
        ("hidden_states = layer(", "hidden_states = self.layers[0]("),
        _SAFE,
        _none("branches differ"),
    ),
    Pair(
        "`forward` on the plain side",
        _branch(),
        ("hidden_states = layer(", "hidden_states = layer.forward("),
        _SAFE,
        _none("branches differ"),
    ),
    Pair(
        "`forward` on the checkpointed side",
        _branch(BRANCH.replace("layer.__call__", "layer.forward")),
        ("layer.forward,", "layer.backward,"),
        _SAFE,
        _none("leftover"),
    ),
    Pair(
        "an option of the checkpoint function",
        _branch(BRANCH.replace("__call__, hidden_states, mask", "__call__, hidden_states, mask, debug=mask")),
        ("debug=mask", "hidden=mask"),
        _SAFE,
        _none("branches differ"),
    ),
    Pair(
        "a context of the checkpoint function",
        _branch(BRANCH.replace("__call__, hidden_states, mask", "__call__, hidden_states, mask, debug=mask")),
        ("debug=mask", "context_fn=mask"),
        _SAFE,
        _unsafe("context_fn"),
    ),
    Pair(
        "the same where it is not None",
        _branch(BRANCH.replace("hidden_states, mask)", "hidden_states, mask[0])", 1)),
        ("= layer(hidden_states, mask)", "= layer(hidden_states, mask[0] if mask is not None else None)"),
        [found("mismatched-checkpoint-branches", "none", "author"), *_none("branches differ")],
        _SAFE,
    ),
    Pair(
        "the same where it is None",
        _branch(
            BRANCH.replace("hidden_states, mask)", "hidden_states, mask[0])", 1).replace(
                "layer(hidden_states, mask)", "layer(hidden_states, mask[0] if mask is not None else None)"
            )
        ),
        ("if mask is not None", "if mask is None"),
        _SAFE,
        [found("mismatched-checkpoint-branches", "none", "author"), *_none("branches differ")],
    ),
    Pair(
        "another item where it is not None",
        _branch(_ITEMS),
        ("mask[0] if", "mask[1] if"),
        _SAFE,
        [found("mismatched-checkpoint-branches", "none", "author"), *_none("branches differ")],
    ),
    Pair(
        "something else where it is None",
        _branch(_ITEMS),
        ("else None", "else hidden_states"),
        _SAFE,
        [found("mismatched-checkpoint-branches", "none", "author"), *_none("branches differ")],
    ),
    Pair(
        "what is off where it is checkpointed",
        _branch(_SCALED, takes="hidden_states, mask=None, scale=False"),
        ("not scale:", "not mask:"),
        _none("another condition"),
        [found("mismatched-checkpoint-branches", "none", "author"), *_none("another condition")],
    ),
    Pair(
        "positions of a cache that are left out",
        _branch(
            BRANCH.replace("layer(hidden_states, mask)", "layer(hidden_states, mask, cache_position=mask)"),
            takes="hidden_states, mask=None, cache_position=None, x=None",
        ),
        ("cache_position=mask)", "x=mask)"),
        _unsafe("call changes"),
        [found("mismatched-checkpoint-branches", "none", "author"), *_unsafe("call changes")],
    ),
    Pair(
        "positions of a cache that are something else",
        _branch(
            BRANCH.replace("layer(hidden_states, mask)", "layer(hidden_states, cache_position)"),
            takes="hidden_states, cache_position=None, mask=None",
        ),
        ("layer.__call__, hidden_states, mask)", "layer.__call__, hidden_states)"),
        [found("mismatched-checkpoint-branches", "none", "author"), *_none("branches differ")],
        _unsafe("call changes"),
    ),
)


_AUTHOR = [found("mismatched-checkpoint-branches", "none", "author")]
_ONE = BRANCH.replace("hidden_states, mask)", "hidden_states, 1)", 1)
_GUARD = "past_key_values = None"


test_differences = decided(
    Pair(
        "a guard, and the sides are the other way around",
        _branch(
            f"for layer in self.layers:\n    {_FLAG_TEST.replace('if ', 'if not (')}):\n"
            f"        hidden_states = {_OFF}\n"
            f"    else:\n        {_GUARD}\n        hidden_states = {_ON}"
        ),
        (f"                {_GUARD}\n", ""),
        _none("branches differ"),
        _SAFE,
    ),
    Pair(
        "the default of the second of two layers",
        toy(
            block(),
            block(name="ToyOther", takes="hidden_states, mask=None, x=None"),
            model(
                BRANCH.replace("hidden_states, mask)", "hidden_states, None)", 1).replace(
                    _OFF, "layer(hidden_states)"
                ),
                init=f"{STACK}\n{FLAG}\nself.layers.append(ToyOther(config))",
            ),
        ),
        ("mask=None, x=None", "mask=1, x=None"),
        [*_SAFE, found(LAYER, "safe", of="ToyOther")],
        [*_AUTHOR, *_unsafe("call changes"), found(LAYER, "unsafe", "call changes", of="ToyOther")],
    ),
    Pair(
        "an argument that may be among unpacked ones",
        _branch(
            BRANCH.replace("hidden_states, mask)", "hidden_states, **options)", 1),
            takes="hidden_states, mask=None, options=None",
        ),
        ("hidden_states, **options)", "hidden_states)"),
        _none("no cache"),
        [*_AUTHOR, *_unsafe("call changes")],
    ),
    Pair(
        "an argument that may be among those that the plain call unpacks",
        _branch(
            BRANCH.replace(_OFF, "layer(hidden_states, **options)"),
            takes="hidden_states, mask=None, options=None",
        ),
        ("hidden_states, **options)", "hidden_states)"),
        _none("no cache"),
        [*_AUTHOR, *_unsafe("call changes")],
    ),
    Pair(
        "a test that asks for no mode",
        _branch(_ONE.replace(_FLAG_TEST, "if self.training")),
        ("if self.training", "if self.scales"),
        [*_AUTHOR, *_none("no branch of its own")],
        _none("no branch of its own"),
    ),
    Pair(
        "both sides checkpoint",
        _branch(_ONE),
        ("= layer(", "= self._gradient_checkpointing_func(layer, "),
        [*_AUTHOR, *_none("branches differ")],
        _none("no branch of its own"),
    ),
    Pair(
        "two calls on one side",
        _branch(_ONE.replace("    else:", "        self.seen = 1\n    else:")),
        (
            "self.seen = 1",
            "hidden_states = self._gradient_checkpointing_func(layer.__call__, hidden_states, 2)",
        ),
        [*_AUTHOR, *_none("branches differ")],
        _none("branches differ"),
    ),
)


_PAST = "hidden_states, past_key_values=None, use_cache=False"


def _cached(legacy: str = "None", plain: str = "past_key_values", guard: str = "") -> str:
    loop = (
        "for layer in self.layers:\n    if self.gradient_checkpointing and self.training:\n"
        f"{guard}        hidden_states = self._gradient_checkpointing_func(layer.__call__, "
        f"hidden_states, {legacy})\n"
        f"    else:\n        hidden_states = layer(hidden_states, past_key_values={plain})"
    )
    return _branch(loop, takes=_PAST)


test_caches_of_branches = decided(
    Pair(
        "a cache that is off",
        _cached(),
        ("hidden_states, None)", "hidden_states, mask)"),
        _SAFE,
        [found("mismatched-checkpoint-branches", "none", "author"), *_none("branches differ")],
    ),
    Pair(
        "a cache that is off in no release",
        _cached().replace("past_key_values", "memory"),
        ("hidden_states, None)", "hidden_states, memory)"),
        [found("mismatched-checkpoint-branches", "none", "author"), *_unsafe("call changes")],
        _SAFE,
    ),
    Pair(
        "a cache that is left out",
        _cached("mask=mask")
        .replace("use_cache=False", "use_cache=False, mask=None")
        .replace("=past_key_values)", "=past_key_values, mask=mask)"),
        ("(layer.__call__, hidden_states, mask=mask)", "(layer.__call__, hidden_states, 1, mask=mask)"),
        _SAFE,
        [found("mismatched-checkpoint-branches", "none", "author"), *_none("branches differ")],
    ),
    Pair(
        "a guard in front",
        _cached(guard="        past_key_values = None\n", legacy="past_key_values"),
        ("    past_key_values = None\n", "    mask = None\n"),
        _SAFE,
        _none("branches differ"),
    ),
    Pair(
        "a guard in front that is for more than the cache",
        _cached(guard="        past_key_values = None\n", legacy="past_key_values"),
        ("    past_key_values = None\n", "    past_key_values = mask = None\n"),
        _SAFE,
        _none("branches differ"),
    ),
    Pair(
        "something else than a cache",
        _cached(),
        ("past_key_values=past_key_values", "past_key_values=self.prompt"),
        _SAFE,
        _none("no cache"),
    ),
    Pair(
        "a cache that no later release disables",
        _cached().replace("past_key_values", "past_key_value"),
        ("=past_key_value)", "=None if self.gradient_checkpointing else past_key_value)"),
        _unsafe("call changes"),
        _SAFE,
        releases=">=5.17",
    ),
)


_HELPER = "def halved(x):\n    return x * 0.5\n"
_WRAPPER = """\
def wrapped(module):
    def run(*inputs):
        return module(*inputs)
    return run
"""


@pytest.mark.parametrize(
    ("helper", "loop", "is_kept"),
    [
        (_WRAPPER, BRANCH.replace("layer.__call__", "wrapped(layer)"), False),
        # The plain side uses it as well, or what follows.
        (_HELPER, BRANCH.replace("hidden_states, mask)", "halved(hidden_states), mask)"), True),
        (_HELPER, BRANCH.replace("hidden_states, mask)", "hidden_states, halved(mask))"), True),
        (
            _WRAPPER,
            BRANCH.replace("layer.__call__", "wrapped(layer)") + "self.made = wrapped\n",
            True,
        ),
    ],
)
def test_a_helper_goes_with_the_branch_that_alone_uses_it(
    helper: str, loop: str, is_kept: bool, outside: Outside
) -> None:
    outside.write({FILE: _branch(helper + loop.strip())})
    outside.run("check", "--no-cache", "--fix", "--unsafe-fixes", FILE)
    text = (outside.folder / FILE).read_text(encoding="utf-8")
    assert "class ToyLayer(GradientCheckpointingLayer)" in text
    name = helper[len("def ") :].partition("(")[0]
    assert (f"def {name}(" in text) is is_kept
