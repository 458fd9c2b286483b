"""Who imports what is changed, in whatever way, and which classes lead to it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.proof.reach import Reach
from gclint.settings import Settings

_CHANGED = "package/models/x/modeling_x.py"
_PACKAGE = {
    "package/__init__.py": "from .models import *\n",
    "package/models/__init__.py": "from .x import *\n",
    "package/models/x/__init__.py": (
        "if TYPE_CHECKING:\n    from .modeling_x import *\nelse:\n    sys.modules[__name__] = Lazy()\n"
    ),
    _CHANGED: "class Base:\n    pass\n\nclass Block(Base):\n    pass\n\nclass Apart:\n    pass\n",
    "package/models/y/__init__.py": "",
    "package/models/z/__init__.py": "",
}


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _project(texts: Mapping[str, str], settings: Settings | None = None) -> Project:
    for name, text in texts.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    given = [Path(name) for name in texts if Path(name).name.startswith("modeling_") and "site" not in name]
    return Project(settings or Settings(), given)


def _leading(project: Project, changed: str) -> set[tuple[str, str | None]]:
    """Return what leads to the classes of a file, all of which are changed."""
    path = Path(changed)
    before = path.read_text()
    reach = Reach(project, {path: (before, before.replace("pass", "x = 1"))})
    return {(user.as_posix(), name) for user, name in reach.leading([path])}


def _users(project: Project, changed: str) -> set[str]:
    return {path for path, _ in _leading(project, changed)}


@pytest.mark.parametrize(
    "statement",
    [
        "from ..x.modeling_x import Block",
        "from ..x.modeling_x import Block as Other",
        "from ..x.modeling_x import *",
        "from ..x import modeling_x",
        "from .. import x\nBlock = x.Block",
        "from ..x import Block",
        "from ... import Block",
        "from package.models.x.modeling_x import Block",
        "import package.models.x.modeling_x",
        "import package.models.x.modeling_x as other",
        "def late():\n    from ..x.modeling_x import Block\n    return Block",
        "try:\n    from ..x.modeling_x import Block\nexcept ImportError:\n    Block = None",
    ],
)
def test_a_file_that_imports_a_changed_one_is_a_user_of_it(statement: str) -> None:
    user = "package/models/y/modeling_y.py"
    other = {"package/models/z/modeling_z.py": "from ..x.configuration_x import Config\n"}
    users = _users(_project({**_PACKAGE, **other, user: f"{statement}\n"}), _CHANGED)
    assert {path for path in users if "/modeling_" in path} == {_CHANGED, user}


@pytest.mark.parametrize("stray", ["__init__.py", "../__init__.py"])
def test_a_package_inside_of_another_one_by_mistake_is_imported_by_its_name(stray: str) -> None:
    user = "package/models/y/modeling_y.py"
    statement = "from package.models.x.modeling_x import Block\n"
    users = _users(_project({stray: "", "__init__.py": "", **_PACKAGE, user: statement}), _CHANGED)
    assert user in users


@pytest.mark.parametrize(
    ("before", "after", "is_user"),
    [
        ("from a import Base\n", "from b import Base\n", True),
        ("from a import Base\n", "from a import Base  # still\n", False),
        ("Base = 1\n", "", True),
        # There was nothing of the name before, so nobody can have used it.
        ("", "from a import Base\n", False),
    ],
)
def test_what_uses_a_name_that_is_bound_differently_is_a_user(before: str, after: str, is_user: bool) -> None:
    path = Path("modeling_x.py")
    rest = "class Model:\n    base = Base\n"
    reach = Reach(_project({path.name: f"{before}{rest}"}), {path: (f"{before}{rest}", f"{after}{rest}")})
    assert ((path, "Model") in reach.leading([path])) is is_user


@pytest.mark.parametrize("statement", ["from ... import Other", "from ..x import Other", "import package"])
def test_what_a_package_gives_besides_makes_nobody_a_user(statement: str) -> None:
    user = "package/models/y/modeling_y.py"
    assert user not in _users(_project({**_PACKAGE, user: f"{statement}\n"}), _CHANGED)


@pytest.mark.parametrize("statement", ["from modeling_x import Block", "import modeling_x"])
def test_files_beside_it_may_import_it_by_its_bare_name(statement: str) -> None:
    project = _project({"modeling_x.py": "class Block: pass\n", "modeling_y.py": f"{statement}\n"})
    assert _users(project, "modeling_x.py") == {"modeling_x.py", "modeling_y.py"}


def test_users_of_users_are_users_too_and_circles_end() -> None:
    texts = {
        "modeling_x.py": "from .modeling_z import Z\nclass Block: pass\n",
        "helpers.py": "from .modeling_x import Block\n",
        "modeling_y.py": "from .helpers import Block\n",
        "modeling_z.py": "from . import modeling_y\nclass Z: pass\n",
    }
    users = _users(_project(texts), "modeling_x.py")
    assert {Path(path).name for path in users} == set(texts)


def test_an_heir_of_the_same_name_is_followed_as_well() -> None:
    texts = {
        "modeling_x.py": "class Block: pass\n",
        "modeling_y.py": "from . import modeling_x\nclass Block(modeling_x.Block): pass\n",
        # It comes before what makes it a user, and the word has been searched by then.
        "modeling_a.py": "from .modeling_y import Block\nclass Model(Block): pass\n",
    }
    assert ("modeling_a.py", "Model") in _leading(_project(texts), "modeling_x.py")


@pytest.mark.parametrize(
    "shim",
    [
        "from .modeling_x import Block",
        "from .modeling_x import *",
        "from .inner import *",
        "from .inner import Block as Renamed",
        "from . import modeling_x as Renamed",
    ],
)
def test_a_file_that_is_not_given_passes_names_on(shim: str) -> None:
    name = "Renamed" if "Renamed" in shim else "Block"
    texts = {
        "package/__init__.py": "",
        "package/modeling_x.py": "class Block: pass\n",
        "package/inner/__init__.py": "from ..modeling_x import *\n",
        "package/shim.py": shim,
        "package/modeling_y.py": f"from package.shim import {name}\nclass Model:\n    block = {name}\n",
    }
    assert ("package/modeling_y.py", "Model") in _leading(_project(texts), "package/modeling_x.py")


def test_what_reads_a_whole_module_leads_to_all_of_it() -> None:
    texts = {
        "modeling_x.py": "class Block: pass\n",
        "modeling_y.py": "from . import modeling_x\nclass Model:\n    blocks = vars(modeling_x)\n",
    }
    assert ("modeling_y.py", "Model") in _leading(_project(texts), "modeling_x.py")


@pytest.mark.parametrize("statement", ["Block.forward = faster", "register(Block, faster)"])
def test_a_statement_that_binds_nothing_may_change_what_it_names(statement: str) -> None:
    before = f"class Block: pass\ndef faster(self): pass\nclass Model:\n    block = Block\n{statement}\n"
    project = _project({"modeling_x.py": before})
    after = before.replace("(self): pass", "(self): return 1")
    reach = Reach(project, {Path("modeling_x.py"): (before, after)})
    assert (Path("modeling_x.py"), "Model") in reach.leading([Path("modeling_x.py")])


def test_an_import_that_is_removed_may_be_used_by_others() -> None:
    before = "from torch.utils.checkpoint import checkpoint\nclass Block: pass\n"
    project = _project(
        {"modeling_x.py": before, "modeling_y.py": "from .modeling_x import checkpoint\nx = checkpoint\n"}
    )
    after = before.partition("\n")[2]
    reach = Reach(project, {Path("modeling_x.py"): (before, after)})
    assert (Path("modeling_y.py"), "x") in reach.leading([Path("modeling_x.py")])


def test_installed_packages_are_dead_ends(tmp_path: Path) -> None:
    """A class that leads into them, and the files that its names would lead through, are not read."""
    texts = {
        "project/pyproject.toml": "",
        "project/modeling_x.py": (
            "import torch\nfrom transformers import PreTrainedModel\nclass Block: pass\n"
            "class Model(PreTrainedModel):\n    def forward(self): pass\n"
        ),
        "site/transformers/__init__.py": "from .modeling_utils import PreTrainedModel\n__version__ = '5'\n",
        "site/transformers/modeling_utils.py": "import torch\nclass PreTrainedModel(torch.nn.Module): pass\n",
        "site/torch/__init__.py": "from modeling_x import Block\n",
    }
    settings = Settings(library=tmp_path / "site/transformers")
    project = _project(texts, settings)
    changed = Path("project/modeling_x.py")
    before = changed.read_text()
    reach = Reach(project, {changed: (before, before.replace("class Block: pass", "class Block: x = 1"))})
    assert reach.leading([changed]) == {(changed, "Block"), (changed, None)}
    assert not [path for path in project.read if path.name == "modeling_utils.py" or "torch" in path.parts]


_USER = """
from .modeling_x import Block, Apart
from . import modeling_x as whole

TABLE = {"block": Block}

class Heir(Block): pass
class ByTable:
    def forward(self): return TABLE["block"]()
class ByModule:
    def forward(self): return whole.Block()
class ByFunction:
    def forward(self): return made()
class Innocent:
    words = ["Block"]
    def forward(self): return Apart()

def made():
    return Heir()
"""


@pytest.mark.parametrize(
    ("name", "leads"),
    [("Heir", True), ("ByTable", True), ("ByModule", True), ("ByFunction", True), ("Innocent", False)],
)
def test_a_class_leads_to_what_names_lead_to(name: str, leads: bool) -> None:
    before = "class Base: pass\nclass Block(Base): pass\nclass Apart: pass\n"
    after = before.replace("class Block(Base): pass", "class Block(Base): x = 1")
    project = _project({"modeling_x.py": before, "modeling_y.py": _USER})
    changed, user = Path("modeling_x.py"), Path("modeling_y.py")
    reach = Reach(project, {changed: (before, after)})
    assert ((user, name) in reach.leading([changed])) is leads
    assert set(reach.blocks(user)) == {"ByTable", "ByModule", "ByFunction", "Innocent"}


def test_space_and_comments_change_nothing() -> None:
    before = "class Block:\n    x = 1\n"
    project = _project({"modeling_x.py": before})
    after = "class Block:  # A block.\n\n    x = (1)\n"
    changed = Path("modeling_x.py")
    assert not Reach(project, {changed: (before, after)}).leading([changed])


def test_a_file_that_is_not_python_leads_nowhere() -> None:
    project = _project({"modeling_x.py": "class Block: pass\n", "modeling_y.py": "class:\n    Block"})
    assert _users(project, "modeling_x.py") == {"modeling_x.py"}
