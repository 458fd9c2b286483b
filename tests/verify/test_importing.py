"""Modeling files are imported under their names, with other texts where these are given, and offline."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from gclint.verify.sources import overlay_of, target_of
from gclint.verify.worker.protocol import Request, encode

_IMPORT = """
import inspect, json, sys, traceback
from gclint.verify.worker.importing import extend_search_path, import_source, lay_over
from gclint.verify.worker.protocol import decode

request = decode(sys.stdin.readline())
extend_search_path(request.search_path)
lay_over(request.overlay)
(source,) = request.sources
"""


def _run(program: str, line: str = "") -> str:
    """Return what ``program`` prints in an interpreter of its own."""
    done = subprocess.run(
        [sys.executable, "-c", dedent(program)], input=line, capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr
    return done.stdout.strip()


def _import(path: Path, program: str, texts: dict[Path, str] | None = None) -> str:
    """Import the file at ``path``, run ``program``, which has it as ``module``, and return what it prints."""
    target = target_of(path)
    folders = () if target.tree is None else (target.tree,)
    request = Request((target.source,), folders, overlay_of(texts or {}))
    return _run(_IMPORT + "module = import_source(source)\n" + dedent(program), encode(request))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A package with a model in it, outside of everything that is imported otherwise."""
    folder = tmp_path / "src" / "transformers_toy" / "models" / "toy"
    folder.mkdir(parents=True)
    for each in (folder, folder.parent, folder.parent.parent):
        (each / "__init__.py").touch()
    (folder / "configuration_toy.py").write_text("WIDTH = 8\n")
    (folder / "modeling_toy.py").write_text("from ...models.toy.configuration_toy import WIDTH\n")
    return folder


def test_a_file_in_a_package_is_imported_from_its_tree(tree: Path) -> None:
    printed = _import(tree / "modeling_toy.py", "print(module.__name__, module.WIDTH, module.__file__)")
    assert printed == f"transformers_toy.models.toy.modeling_toy 8 {tree / 'modeling_toy.py'}"


def test_a_file_without_a_package_has_relative_imports_too(tmp_path: Path) -> None:
    (tmp_path / "configuration_toy.py").write_text("WIDTH = 8\n")
    path = tmp_path / "modeling_toy.py"
    path.write_text("from .configuration_toy import WIDTH\n")
    assert _import(path, "print(module.WIDTH)") == "8"


@pytest.mark.parametrize("folder", ["remote", "my-model", "my model", "Llama-3.1-8B", "json", "class"])
@pytest.mark.parametrize("is_package", [False, True])
def test_files_beside_the_file_are_imported_without_a_package_too(
    tmp_path: Path, folder: str, is_package: bool
) -> None:
    here = tmp_path / folder
    (here / "parts").mkdir(parents=True)
    if is_package:
        (here / "__init__.py").touch()
    (here / "configuration_toy.py").write_text("class Config: ...\n")
    (here / "modeling_other.py").write_text("from configuration_toy import Config\nimport modeling_toy\n")
    (here / "parts" / "attention.py").write_text("WIDTH = 8\n")
    # What is there already is not looked for in the folder.
    (here / "string.py").write_text("raise ValueError\n")
    path = here / "modeling_toy.py"
    path.write_text(
        "import string\nimport modeling_other\nfrom configuration_toy import Config\n"
        "from .configuration_toy import Config as Same\nfrom parts.attention import WIDTH\n"
        "from .parts import attention\nimport parts.attention\n"
    )
    program = """
    assert module.Config is module.Same is module.modeling_other.Config
    assert module.modeling_other.modeling_toy is module
    assert module.parts.attention is module.attention
    print(module.WIDTH, module.modeling_other.__spec__.name == module.modeling_other.__name__)
    """
    assert _import(path, program) == "8 True"
    texts = {here / "parts" / "attention.py": "WIDTH = 9\n", here / "configuration_toy.py": "Config = 2\n"}
    assert _import(path, "print(module.WIDTH, module.Config)", texts) == "9 2"


def test_a_file_whose_name_has_dots_is_imported(tmp_path: Path) -> None:
    (tmp_path / "configuration_toy.py").write_text("WIDTH = 8\n")
    path = tmp_path / "modeling_toy3.1.py"
    path.write_text("from .configuration_toy import WIDTH\n")
    assert _import(path, "print(module.WIDTH, module.__file__)") == f"8 {path}"
    assert _import(path, "print(module.WIDTH)", {path: "WIDTH = 9\n"}) == "9"


def test_a_package_below_a_folder_with_dots_is_imported(tmp_path: Path) -> None:
    folder = tmp_path / "toys-3.1" / "inner"
    folder.mkdir(parents=True)
    for each in (folder, folder.parent):
        (each / "__init__.py").touch()
    (folder.parent / "common.py").write_text("WIDTH = 8\n")
    path = folder / "modeling_toy.py"
    path.write_text("from ..common import WIDTH\n")
    assert _import(path, "print(module.WIDTH)") == "8"


def test_files_of_the_same_name_in_two_folders_are_two_modules(tmp_path: Path) -> None:
    one, other = (target_of(tmp_path / name / "modeling_toy.py") for name in ("one", "other"))
    assert one.source.module != other.source.module


def test_the_overlay_is_what_runs_and_what_is_shown(tree: Path) -> None:
    path = tree / "modeling_toy.py"
    text = "# déjà vu\n\n\ndef shout():\n    raise ValueError\n"
    printed = _import(
        path,
        """
        print(inspect.getsource(module.shout).strip())
        try:
            module.shout()
        except ValueError:
            print(traceback.format_exc().splitlines()[-2].strip())
        """,
        {path: text},
    )
    assert printed.splitlines() == ["def shout():", "    raise ValueError", "raise ValueError"]
    assert path.read_text().startswith("from")


def test_bytecode_of_the_file_on_the_disk_does_not_come_before_the_overlay(tree: Path) -> None:
    path = tree / "modeling_toy.py"
    assert _import(path, "print(module.WIDTH)") == "8"
    assert _import(path, "print(module.WIDTH)", {path: "WIDTH = 9\n"}) == "9"
    assert _import(path, "print(module.WIDTH)") == "8"


def test_the_overlay_reaches_what_the_file_imports(tree: Path) -> None:
    texts = {tree / "configuration_toy.py": "WIDTH = 16\n"}
    assert _import(tree / "modeling_toy.py", "print(module.WIDTH)", texts) == "16"


def test_a_name_that_leads_to_another_file_is_told(tmp_path: Path, tree: Path) -> None:
    other = tmp_path / "first" / "transformers_toy"
    other.mkdir(parents=True)
    (other / "__init__.py").touch()
    (other / "modeling_toy.py").touch()
    wanted = tmp_path / "second" / "transformers_toy" / "modeling_toy.py"
    target = target_of(wanted)
    program = """
    source = type(source)(source.path, "transformers_toy.modeling_toy")
    try:
        import_source(source)
    except ImportError as error:
        print(error)
    """
    request = Request((target.source,), (str(other.parent),))
    printed = _run(_IMPORT + dedent(program), encode(request))
    assert printed == f"the name transformers_toy.modeling_toy leads to {other / 'modeling_toy.py'}"


def test_a_folder_that_is_searched_already_does_not_come_first() -> None:
    program = """
    import sys
    from gclint.verify.worker.importing import extend_search_path

    before = list(sys.path)
    extend_search_path([before[-1], "/somewhere/else"])
    print(sys.path == ["/somewhere/else", *before])
    """
    assert _run(program) == "True"


@pytest.mark.parametrize(
    "reach_out",
    [
        "socket.create_connection(('127.0.0.1', 9))",
        "socket.getaddrinfo('localhost', 80)",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'', ('127.0.0.1', 9))",
        "urllib.request.urlopen('http://127.0.0.1:9')",
    ],
)
def test_no_network_is_reached(reach_out: str) -> None:
    program = f"""
    import os, socket, urllib.request
    from gclint.verify.worker.isolation import go_offline

    go_offline()
    try:
        {reach_out}
    except OSError as error:
        print(error)
    print(os.environ["HF_HUB_OFFLINE"])
    """
    told, hub = _run(program).splitlines()
    assert "gclint runs models offline" in told
    assert hub == "1"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the sockets of this machine have paths elsewhere")
def test_a_socket_of_this_machine_is_no_network(tmp_path: Path) -> None:
    program = f"""
    import socket
    from gclint.verify.worker.isolation import go_offline

    go_offline()
    server, client = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    server.bind({str(tmp_path / "s")!r})
    server.listen()
    client.connect({str(tmp_path / "s")!r})
    one, other = socket.socketpair()
    print("connected")
    """
    assert _run(program) == "connected"
