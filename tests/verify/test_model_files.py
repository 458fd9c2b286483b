"""Which files are imported to be run: those that define a model by their text, and no scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.settings import Settings
from gclint.verify.model_files import ModelFiles
from gclint.verify.sources import targets_of


def _is_model(folder: Path, text: str, **others: str) -> bool:
    for name, content in {"modeling_x": text, **others}.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return ModelFiles().defines_model(folder / "modeling_x.py")


@pytest.mark.parametrize(
    "text",
    [
        "class X(PreTrainedModel): ...\n",
        "class X(transformers.PreTrainedModel): ...\n",
        "class X(nn.Module): ...\nclass Y(Mixin, XPreTrainedModel, metaclass=M): ...\n",
        "if True:\n    class X(\n        PreTrainedModel,  # the base\n    ): ...\n",
        "class A(PreTrainedModel): ...\nclass B(A): ...\n",
        "class X[T: (int, str)](PreTrainedModel): ...\n",
        "class X(Base[int], LlamaPreTrainedModel): ...\n",
        "from transformers import LlamaForCausalLM\nclass X(LlamaForCausalLM): ...\n",
        "import transformers as t\nclass X(t.BertModel): ...\n",
        "from transformers.models.llama.modeling_llama import LlamaModel as Base\nclass X(Base): ...\n",
        "from transformers import PreTrainedModel\nBase = PreTrainedModel\nclass X(Base): ...\n",
        "def make():\n    class X(PreTrainedModel): ...\n    return X\n\nX = make()\n",
    ],
)
def test_a_model_by_its_own_text(tmp_path: Path, text: str) -> None:
    assert _is_model(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        "print('a script')\n",
        "from transformers import PreTrainedModel\nPreTrainedModel.from_pretrained('x')\n",
        "class X(nn.Module): ...\n",
        "class X(A): ...\nclass A(X): ...\n",
        "X = 1\nclass X(X): ...\n",
        "from transformers import Trainer\nclass X(Trainer): ...\n",
        "from transformers import PretrainedConfig\nclass X(PretrainedConfig): ...\n",
        "from pydantic import BaseModel\nclass X(BaseModel): ...\n",
        "class X(nn.Module, base=PreTrainedModel): ...\n",
        "# class X(PreTrainedModel): ...\n'''\nclass X(PreTrainedModel): ...\n'''\n",
        "def make():\n    class X(PreTrainedModel): ...\n",
    ],
)
def test_no_model_by_its_own_text(tmp_path: Path, text: str) -> None:
    assert not _is_model(tmp_path, text)


def test_bases_are_followed_into_siblings(tmp_path: Path) -> None:
    base = "from transformers import PreTrainedModel\nclass Base(PreTrainedModel): ...\nclass Tool: ...\n"
    assert _is_model(tmp_path, "from .base import Base\nclass X(Base): ...\n", base=base)
    assert _is_model(tmp_path, "from .base import *\nclass X(Base): ...\n", base=base)
    assert _is_model(tmp_path, "from base import Base as B\nclass X(B): ...\n", base=base)
    assert not _is_model(tmp_path, "from .base import Tool\nclass X(Tool): ...\n", base=base)
    circle = "from .modeling_x import X\nclass Base(X): ...\n"
    assert not _is_model(tmp_path, "from .base import Base\nclass X(Base): ...\n", base=circle)


def test_only_models_are_targets_and_a_script_that_is_given_is_a_problem(tmp_path: Path) -> None:
    for name, text in {
        "modeling_x.py": "class X(PreTrainedModel): ...\n",
        "modeling_y.py": "raise SystemExit('imported')\n",
        "train.py": "raise SystemExit('imported')\n",
        "encoder.py": "class E(PreTrainedModel): ...\n",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    targets, found = targets_of([tmp_path], Settings(include=("*.py",)))
    assert [target.path.name for target in targets] == ["encoder.py", "modeling_x.py"]
    assert found.problems == []
    targets, found = targets_of([tmp_path / "train.py"], Settings())
    assert targets == []
    assert [problem.message for problem in found.problems] == [
        "it is not imported: no class in its text derives from PreTrainedModel"
    ]
