"""Verdicts that are recalled, held to what a run without them says, after any edits."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gclint.cache.place import CachePlace
from gclint.cache.store import NAME, Store
from gclint.code.discovery import survey
from gclint.code.project import Project
from gclint.rule import Rule, all_rules
from gclint.run.check import LintResult, Recalled, check
from gclint.run.fix import fix
from gclint.run.memory import Memory
from gclint.settings import Settings
from gclint.trace import phase, traced
from tests.cache.shell import BASE, CHECKPOINTED_BASE, MODEL, OWN, write_project

_SWITCH = "def enable(model):\n    model.gradient_checkpointing = True\n"
_PATCH = "from package.models.own.modeling_own import BaseBlock\nBaseBlock.forward = print\n"
_PATCH_OF_ANY = "def patch(thing):\n    thing.forward = print\n"
_PATCH_OF_LAYERS = "def patch(model):\n    for layer in model.layers:\n        layer.forward = print\n"
_CHECKPOINT = """from torch.utils.checkpoint import checkpoint

from package.models.own.modeling_own import BaseBlock, MyModel


class Runner(MyModel):
    def forward(self, hidden_states, attention_mask=None):
        for layer in self.layers:
            hidden_states = checkpoint(layer, hidden_states, attention_mask, use_reentrant=False)
        return hidden_states
"""
_SUBCLASS = """from ..own.modeling_own import BaseBlock


class Sub(BaseBlock):
    def forward(self, hidden_states, attention_mask=None):
        return super().forward(hidden_states=hidden_states)
"""
_MODULAR = """from ..own.modeling_own import BaseBlock, MyModel


class OtherBlock(BaseBlock):
    pass


class OtherModel(MyModel):
    pass
"""
_COPY = OWN.replace(
    "class BaseBlock",
    "# Copied from transformers.models.own.modeling_own.BaseBlock with Base->Copy\nclass CopyBlock",
).replace("BaseBlock(config)", "CopyBlock(config)")
_TEXTS = (
    BASE,
    CHECKPOINTED_BASE,
    MODEL,
    OWN,
    OWN.replace("layer(hidden_states, attention_mask)", "layer(hidden_states=hidden_states)"),
    OWN.replace("supports_gradient_checkpointing = True", "supports_gradient_checkpointing = False"),
    OWN.replace("    pass\n", "    pass  # gclint: ignore\n").replace("layer in", "layer  in"),
    MODEL.replace("class MyBlock(BaseBlock):", "class MyBlock(BaseBlock):  # gclint: ignore[GC001]"),
    _SWITCH,
    _PATCH,
    _PATCH_OF_ANY,
    _PATCH_OF_LAYERS,
    _CHECKPOINT,
    _SUBCLASS,
    _MODULAR,
    _COPY,
    "x = (\n",
    "",
)
_NAMES = (
    "base/modeling_base.py",
    "mine/modeling_mine.py",
    "mine/modular_mine.py",
    "own/modeling_own.py",
    "own/modeling_extra.py",
    "own/configuration_own.py",
    "other/modeling_other.py",
    "other/modular_other.py",
    "train.py",
    "../modeling_layers.py",
    "../torch.py",
    "../../train.py",
)


@dataclass
class _Recording:
    """Passes on to a memory, and counts what it knew."""

    memory: Memory
    recalled: int = field(default=0)
    is_whole: bool = field(default=False)
    """Whether what was found as a whole still stood."""

    def recall(self, project: Project, rules: list[Rule]) -> Recalled:
        found = self.memory.recall(project, rules)
        self.recalled = len(found.verdicts)
        self.is_whole = found.result is not None
        return found

    def keep(self, project: Project, result: LintResult) -> None:
        self.memory.keep(project, result)


def _checked(paths: list[Path], memory: object = None) -> object:
    """Return all that a run finds, and what its fixes would change."""
    settings, rules = Settings(), list(all_rules())
    with traced():
        with phase("survey"):
            files = survey(paths, settings).files
        project = Project(settings, files, within=paths)
        found = check(project, rules, memory=memory)  # type: ignore[arg-type]
        assert isinstance(found, LintResult)
        fixed = fix(project, rules, unsafe=True, known=found)
    said = (found.findings, found.problems, found.files, dict(found.ran), set(found.groups))
    return *said, fixed.findings, fixed.applied, fixed.changed


def _memory(folder: Path, paths: list[Path]) -> Memory:
    return Memory(Store(CachePlace(folder / "cache", "0" * 16)), paths)


def _agree(folder: Path, paths: list[Path]) -> int:
    """Make sure that a run with a memory and one without agree; return how many verdicts were recalled."""
    memory = _Recording(_memory(folder, paths))
    assert _checked(paths, memory) == _checked(paths)
    return memory.recalled


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _models() -> Path:
    return Path("package", "models")


def test_only_what_hangs_on_an_edit_is_judged_again(project: Path) -> None:
    paths = [Path("package")]
    assert _agree(project, paths) == 0
    assert _agree(project, paths) == 3
    (_models() / "own/modeling_own.py").write_text(OWN + "\n# more\n", encoding="utf-8")
    assert _agree(project, paths) == 2
    assert _agree(project, paths) == 3
    (_models() / "base/modeling_base.py").write_text(CHECKPOINTED_BASE, encoding="utf-8")
    assert _agree(project, paths) < 3
    assert _agree(project, paths) == 3


def test_a_file_that_replaces_something_else_matters_to_no_other(project: Path) -> None:
    paths = [Path("package")]
    other = _models() / "other/modeling_other.py"
    _write(other, _PATCH_OF_ANY)
    _agree(project, paths)
    known = _agree(project, paths)
    _write(other, f"{_PATCH_OF_ANY}\n\nMORE = 1\n")
    assert _agree(project, paths) == known - 1
    for text in (_PATCH_OF_LAYERS, _PATCH):
        _write(other, text)
        assert _agree(project, paths) < known - 1


def test_what_was_found_as_a_whole_stands_as_long_as_nothing_of_it_changes(project: Path) -> None:
    paths = [Path("package")]
    other = _models() / "other/modeling_other.py"
    _write(other, CHECKPOINTED_BASE)
    _agree(project, paths)
    for text, stands in (
        (CHECKPOINTED_BASE.replace("return", "x = 1\n        return"), True),
        (_COPY, False),  # It names the module of another file, in which it might replace something.
        (_COPY.replace("return", "x = 1\n        return"), False),
    ):
        _write(other, text)
        memory = _Recording(_memory(project, paths))
        assert _checked(paths, memory) == _checked(paths)
        assert memory.is_whole == stands
    _write(_models() / "new/modeling_new.py", CHECKPOINTED_BASE)
    _agree(project, paths)


@pytest.mark.drawn(first=2)
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("package/train.py", _SWITCH),
        ("package/train.py", _PATCH),
        ("package/train.py", _CHECKPOINT),
        ("package/models/mine/modeling_more.py", _SUBCLASS),
        ("package/models/mine/modeling_more.py", _CHECKPOINT),
        ("package/torch.py", "class nn:\n    pass\n"),
    ],
)
def test_a_file_that_nobody_knew_of(project: Path, name: str, text: str) -> None:
    paths = [Path("package")]
    _agree(project, paths)
    (project / name).write_text(text, encoding="utf-8")
    _agree(project, paths)
    (project / name).unlink()
    _agree(project, paths)


def test_a_damaged_memory_is_none(project: Path) -> None:
    paths = [Path("package")]
    _agree(project, paths)
    database = project / "cache" / NAME
    database.write_bytes(database.read_bytes()[:-4096])
    assert _agree(project, paths) == 0


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _rewrite(chosen: random.Random, path: Path) -> None:
    _write(path, chosen.choice(_TEXTS))


def _append(chosen: random.Random, path: Path) -> None:
    if path.exists():
        path.write_text(f"{path.read_text(encoding='utf-8')}\n# {chosen.random()}\n", encoding="utf-8")


def _lay_out(chosen: random.Random, path: Path) -> None:
    if path.exists():
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        for _ in range(chosen.choice((1, 3))):
            lines.insert(
                chosen.randint(0, len(lines)), chosen.choice(("\n", "# a note\n", "  # 12, or more\n"))
            )
        path.write_text("".join(lines), encoding="utf-8")


def _delete(_chosen: random.Random, path: Path) -> None:
    path.unlink(missing_ok=True)


def _copy(chosen: random.Random, path: Path) -> None:
    other = _models() / chosen.choice(_NAMES)
    if path.exists() and path.resolve() != other.resolve():
        other.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, other)


_EDITS: tuple[Callable[[random.Random, Path], None], ...] = (
    _rewrite,
    _rewrite,
    _append,
    _lay_out,
    _lay_out,
    _delete,
    _copy,
)


@pytest.mark.drawn(first=2, full=12)
@pytest.mark.parametrize("seed", range(40))
def test_any_edits(project: Path, seed: int) -> None:
    chosen = random.Random(seed)
    paths = [Path("package")]
    recalled = 0
    for _ in range(8):
        for _ in range(chosen.choice((1, 1, 2))):
            chosen.choice(_EDITS)(chosen, _models() / chosen.choice(_NAMES))
        recalled += _agree(project, paths)
        if chosen.random() < 0.2:
            _agree(project, [Path("package/models/own"), Path("package/models/mine")])
    assert recalled
