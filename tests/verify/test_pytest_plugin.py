"""``pytest --gclint`` on tests as transformers and those who follow it write them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.verify.planted import FOLDER

_TESTS = """\
import sys
import unittest

import torch

sys.path.insert(0, {folder!r})
import healthy.modeling_toy, keyword_stream.modeling_toy, nothing_to_switch.modeling_toy


class Tester:
    def __init__(self, module):
        self.module = module

    def prepare_config_and_inputs_for_common(self):
        return self.module.ToyConfig(), {{"input_ids": torch.randint(0, 32, (2, 6))}}


class Common:
    all_model_classes = ()

    def setUp(self):
        self.model_tester = Tester(self.module)

    def _prepare_for_class(self, inputs, model_class, return_labels=False):
        assert return_labels
        return dict(inputs)


class RightTest(Common, unittest.TestCase):
    module = healthy.modeling_toy
    all_model_classes = (module.ToyModel,)


class WrongTest(Common, unittest.TestCase):
    module = keyword_stream.modeling_toy

    def setUp(self):
        super().setUp()
        self.all_model_classes = (healthy.modeling_toy.ToyModel, self.module.ToyModel)


class NoneTest(Common, unittest.TestCase):
    module = healthy.modeling_toy


class TestOthers:
    all_model_classes = None

    def setup_method(self):
        self.model_tester = Tester(healthy.modeling_toy)
        self.all_model_classes = [healthy.modeling_toy.ToyModel]

    def test_something(self):
        pass
"""


def _pytest(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "pytest", "-rA", "-p", "gclint.testing.plugin", *arguments]
    # Whether it is also found by itself depends on how gclint is installed.
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert ran.stderr == ""
    return ran.stdout


@pytest.mark.torch
def test_models_of_tests_are_examined(tmp_path: Path) -> None:
    (tmp_path / "test_toys.py").write_text(_TESTS.format(folder=str(FOLDER)), encoding="utf-8")
    said = _pytest(tmp_path, "--gclint")
    assert "PASSED test_toys.py::RightTest::test_gclint" in said
    assert "PASSED test_toys.py::TestOthers::test_gclint" in said
    assert "FAILED test_toys.py::WrongTest::test_gclint" in said
    assert "ToyModel failed missing gradients (reentrant default)" in said
    assert "no model of this class supports gradient checkpointing" in said
    assert "1 failed, 3 passed, 1 skipped" in said


def test_nothing_is_examined_that_nobody_asked_for(tmp_path: Path) -> None:
    (tmp_path / "test_toys.py").write_text(
        "class TestToys:\n    all_model_classes = ()\n    def test_one(self):\n"
        "        import sys\n"
        "        assert not {'torch', 'gclint.testing.model_check'} & sys.modules.keys()\n",
        encoding="utf-8",
    )
    assert "1 passed" in _pytest(tmp_path)
