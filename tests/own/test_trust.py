"""Nothing runs because a repository says so."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path

import pytest

from gclint.cli.about import _load
from gclint.code.paths import is_active
from gclint.rule import own_rules
from gclint.server.session import Session
from tests.environment import PROJECT
from tests.own.team import FINDING, RULE, Run, distribution, run
from tests.repository import Repository
from tests.sample import BROKEN


@pytest.mark.parametrize("name", ["pyproject.toml", "gclint.toml", "sub/pyproject.toml", "sub/gclint.toml"])
@pytest.mark.parametrize("value", ["evil.py", "evil", "acme"])
def test_settings_of_a_repository_are_answered(
    gclint: Run, folder: Path, marker: Path, name: str, value: str
) -> None:
    (folder / "sub").mkdir()
    for each in (folder, folder / "sub"):
        (each / "evil.py").write_text(RULE)
        (each / "modeling_sample.py").write_text(BROKEN)
    header = "[tool.gclint]\n" if "pyproject" in name else "\n"
    (folder / name).write_text(f'{header}extra-rules = ["{value}"]\n')
    status, out, err = gclint("--output-format", "concise")
    written = f"{Path(name).parent / value}" if value.endswith(".py") else value
    assert f"{name}:2:1: note: extra-rules is ignored" in err
    assert err.rstrip().endswith(f"write --extra-rules {written}")
    assert (status, "ACM001" in out, marker.exists()) == (1, False, False)
    assert "\nextra-rules = []  # default\n" in gclint("config").out
    gclint("explain", "modeling_sample.py:31")
    gclint("--config", name)
    assert not marker.exists()
    assert [*map(str, own_rules())] == []


def test_thousands_of_names_are_refused(gclint: Run, folder: Path) -> None:
    (folder / "gclint.toml").write_text(f"extra-rules = {['a'] * 1001}")
    assert "it has 1,001 modules, and at most 1,000 are allowed" in gclint().err
    (folder / "gclint.toml").write_text(f"extra-rules = {['a', *'bcdef', chr(7)]}".replace("x07", "u0007"))
    assert gclint().err.count("--extra-rules") == 3


def test_what_a_repository_names_has_no_effect_on_a_terminal_or_ci(gclint: Run, folder: Path) -> None:
    (folder / "gclint.toml").write_text('extra-rules = ["\\u001b[31m::error::x\\n::error::y; rm -rf.py"]')
    err = gclint().err
    assert err.count("\n") == 1
    assert not is_active(err.rstrip("\n"))


def test_nor_is_anything_run_by_the_server(folder: Path, marker: Path) -> None:
    (folder / "evil.py").write_text(RULE)
    (folder / "gclint.toml").write_text('extra-rules = ["evil.py"]\n')
    session = Session(_load, "utf-16", [folder])
    while session.is_busy:
        session.work()
    assert not marker.exists()


def test_no_note_about_what_the_user_has_named(gclint: Run, folder: Path) -> None:
    (folder / "tools").mkdir()
    (folder / "tools" / "our_rules.py").write_text(RULE)
    (folder / "gclint.toml").write_text('extra-rules = ["tools/our_rules.py"]\n')
    _, out, err = gclint("--extra-rules", "tools/our_rules.py")
    assert FINDING in out
    assert "note" not in err


def test_a_repository_may_have_settings_for_rules_that_are_not_loaded(gclint: Run, folder: Path) -> None:
    text = 'ignore = ["ACM001"]\n[levels]\nACM = "note"\n[rules.two-layers]\nwords = ["x"]\n'
    (folder / "gclint.toml").write_text(f'extra-rules = ["our_rules.py"]\n{text}')
    assert gclint().status == 1
    (folder / "gclint.toml").write_text(text)
    assert gclint().status == 2


@pytest.mark.parametrize("as_folder", [False, True])
def test_a_module_is_not_looked_for_in_a_repository(
    folder: Path, marker: Path, config: Path, as_folder: bool
) -> None:
    path = folder / "acme_rules" / "__init__.py" if as_folder else folder / "acme_rules.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(RULE)
    (folder / "src").mkdir()
    (folder / "src" / "acme_rules.py").write_text(RULE)
    (folder / "src" / "sitecustomize_gclint.py").write_text(RULE)
    config.write_text('extra-rules = ["acme_rules"]\n')
    for places in ("", ".", "src", str(folder), str(folder / "src")):
        found = run("modeling_sample.py", PYTHONPATH=f"{PROJECT}{os.pathsep}{places}")
        assert found.status == 2
        assert "there is no module or entry point acme_rules" in found.err
    # Nor in what is checked, from elsewhere.
    environment = {**os.environ, "PYTHONPATH": f"{PROJECT}{os.pathsep}{folder}"}
    done = subprocess.run(
        [sys.executable, "-m", "gclint", str(folder)], cwd=config.parent, env=environment, capture_output=True
    )
    assert (done.returncode, marker.exists()) == (2, False)


@pytest.mark.parametrize("given", ["inner", "inner/modeling_sample.py", "link.py", "linked"])
def test_nor_in_the_repositories_around_what_is_given(
    folder: Path, marker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    Repository.at(folder / "inner").write("modeling_sample.py", text=BROKEN)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "modeling_sample.py").write_text(BROKEN)
    (folder / "link.py").symlink_to(tmp_path / "elsewhere" / "modeling_sample.py")
    (folder / "linked").symlink_to(tmp_path / "elsewhere")
    (folder / "acme_rules.py").write_text(RULE)
    monkeypatch.chdir(tmp_path / "elsewhere")
    path = f"{PROJECT}{os.pathsep}{folder}"
    assert run("--extra-rules", "acme_rules", folder / given, PYTHONPATH=path).status == 2
    assert not marker.exists()


def test_nor_does_a_hook_lead_there(
    gclint: Run, folder: Path, marker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hook(MetaPathFinder):
        """What an editable installation of the repository leaves in the environment."""

        def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
            is_meant = name == "acme_hooked"
            return spec_from_file_location(name, folder / "acme_hooked.py") if is_meant else None

    (folder / "acme_hooked.py").write_text(RULE)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Hook()])
    status, _, err = gclint("--extra-rules", "acme_hooked")
    assert (status, marker.exists()) == (2, False)
    assert "the module acme_hooked is acme_hooked.py, part of what is checked; name it by its path" in err


def test_a_namespace_package_is_not_continued_in_a_repository(
    folder: Path, marker: Path, tmp_path: Path
) -> None:
    for place in (tmp_path / "installed", folder):
        (place / "acme").mkdir(parents=True)
    (folder / "acme" / "rules.py").write_text(RULE)
    path = os.pathsep.join(map(str, (PROJECT, tmp_path / "installed", folder)))
    found = run("--extra-rules", "acme.rules", PYTHONPATH=path)
    assert (found.status, marker.exists()) == (2, False)
    (tmp_path / "installed" / "acme" / "rules.py").write_text(RULE)
    assert FINDING in run("--extra-rules", "acme.rules", PYTHONPATH=path).out


def test_an_entry_point_is_loaded_only_if_it_is_named(folder: Path, marker: Path, tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    distribution(installed, "acme", "team = acme_rules.all\nodd = acme_rules:all")
    (installed / "acme_rules").mkdir()
    (installed / "acme_rules" / "__init__.py").write_text("")
    (installed / "acme_rules" / "all.py").write_text(RULE)
    path = f"{PROJECT}{os.pathsep}{installed}"
    assert "ACM001" not in run(PYTHONPATH=path).out
    assert not marker.exists()
    assert FINDING in run("--extra-rules", "team", PYTHONPATH=path).out
    assert "the entry point odd leads to 'acme_rules:all'" in run("--extra-rules", "odd", PYTHONPATH=path).err
    distribution(folder, "evil", "team = evil")
    (folder / "evil.py").write_text("raise SystemExit(7)")
    assert FINDING in run("--extra-rules", "team", PYTHONPATH=f"{path}{os.pathsep}{folder}").out
    distribution(installed, "other", "team = other_rules")
    twice = run("--extra-rules", "team", PYTHONPATH=path)
    assert twice.err.startswith(
        "Error: --extra-rules: several entry points are called team: acme_rules.all, "
    )


def test_a_package_has_the_rules_that_it_takes_from_inside(folder: Path, tmp_path: Path) -> None:
    package = tmp_path / "installed" / "acme_rules"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "from acme_rules.layers import TwoLayers\nfrom gclint.rule import Rule\n"
    )
    (package / "layers.py").write_text(RULE)
    path = f"{PROJECT}{os.pathsep}{package.parent}"
    assert FINDING in run("--extra-rules", "acme_rules", PYTHONPATH=path).out


def test_folders_named_like_gclints_add_no_rules(folder: Path, marker: Path) -> None:
    for name in ("rules/gc998_evil.py", "gclint_rules/evil.py", "sub/gclint/rules/evil.py"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(RULE)
    (folder / "rules" / "__init__.py").write_text("")
    assert "ACM001" not in run().out
    assert not marker.exists()


@pytest.mark.skipif(os.name != "posix", reason="Windows has other rights, and links need one")
@pytest.mark.parametrize("kind", ["tracked", "link", "linked folder", "everybody's"])
def test_settings_that_somebody_else_may_have_written_are_not_the_users(
    gclint: Run, config: Path, marker: Path, kind: str, tmp_path: Path
) -> None:
    config.write_text('extra-rules = ["our_rules.py"]\n')
    config.with_name("our_rules.py").write_text(RULE)
    if kind == "tracked":
        repository = Repository.at(tmp_path / "config")
        repository.commit()
    elif kind == "link":
        config.rename(tmp_path / "elsewhere.toml")
        config.symlink_to(tmp_path / "elsewhere.toml")
    elif kind == "linked folder":
        config.parent.rename(tmp_path / "elsewhere")
        config.parent.symlink_to(tmp_path / "elsewhere")
    else:
        config.chmod(0o666)
    status, out, err = gclint()
    assert re.search(r"gclint\.toml: note: this file is not read: ", err)
    assert (status, "ACM001" in out, marker.exists()) == (1, False, False)


def test_a_link_of_a_repository_to_the_users_settings_names_nothing(
    gclint: Run, folder: Path, config: Path, marker: Path
) -> None:
    config.write_text('extra-rules = ["our_rules.py"]\nselect = ["GC"]\n')
    status, _, err = gclint()
    assert (status, marker.exists()) == (2, False)
    assert err.endswith("gclint.toml:2:1: select belongs into the settings of a project\n")
    config.write_text("extra-rules = []\n")
    (folder / "pyproject.toml").symlink_to(config)
    assert gclint().status == 1
