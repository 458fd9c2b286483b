"""The decisions that gclint makes about code, each with both answers, asked from outside."""

import pytest

# What the tests of pairs assert stands there.
pytest.register_assert_rewrite("tests.decisions.outside")
