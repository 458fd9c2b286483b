"""Who imports a changed file, in whatever way, and which classes lead to what is changed in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from gclint.engine.imports import Imports
from gclint.engine.reach import Reach
from gclint.settings import Settings
from gclint.source.project import Project

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


def _project(texts: Mapping[str, str]) -> Project:
    for name, text in texts.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Project(Settings(), [Path(name) for name in texts if "/modeling_" in f"/{name}"])


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
    imports = Imports(_project({**_PACKAGE, **other, user: f"{statement}\n"}))
    given = {path for path in imports.users([Path(_CHANGED)]) if path.name.startswith("modeling_")}
    assert given == {Path(_CHANGED), Path(user)}


@pytest.mark.parametrize("statement", ["from modeling_x import Block", "import modeling_x"])
def test_files_beside_it_may_import_it_by_its_bare_name(statement: str) -> None:
    imports = Imports(_project({"modeling_x.py": "class Block: pass\n", "modeling_y.py": f"{statement}\n"}))
    assert imports.users([Path("modeling_x.py")]) == {Path("modeling_x.py"), Path("modeling_y.py")}


def test_users_of_users_are_users_too_and_circles_end() -> None:
    texts = {
        "modeling_x.py": "from .modeling_z import Z\nclass Block: pass\n",
        "helpers.py": "from .modeling_x import Block\n",
        "modeling_y.py": "from .helpers import Block\n",
        "modeling_z.py": "from . import modeling_y\nclass Z: pass\n",
    }
    users = Imports(_project(texts)).users([Path("modeling_x.py")])
    assert {path.name for path in users} == set(texts)


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
    reach = Reach(Imports(project), {Path("modeling_x.py"): (before, after)})
    assert reach.has(Path("modeling_y.py"), name, _USER) is leads
    assert set(reach.blocks_in(Path("modeling_y.py"), _USER)) == {"ByTable", "ByModule", "ByFunction"}


def test_space_and_comments_change_nothing() -> None:
    before = "class Block:\n    x = 1\n"
    project = _project({"modeling_x.py": before})
    after = "class Block:  # A block.\n\n    x = (1)\n"
    reach = Reach(Imports(project), {Path("modeling_x.py"): (before, after)})
    assert not reach.has(Path("modeling_x.py"), "Block", after)


def test_a_file_that_is_not_python_leads_nowhere() -> None:
    project = _project({"modeling_x.py": "class Block: pass\n"})
    reach = Reach(Imports(project), {Path("modeling_x.py"): ("class Block: pass\n", "class Block: x = 1\n")})
    assert not reach.has(Path("modeling_y.py"), "Model", "class:")
