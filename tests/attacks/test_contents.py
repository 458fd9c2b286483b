"""Contents that no parser, and no file system, expects: each is read at once, or named in one line."""

from __future__ import annotations

import itertools
import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import pytest

from gclint import interruption, toml
from gclint.code.project import Project
from gclint.code.syntax import compile_problem
from gclint.finding import Applicability, Finding
from gclint.network.evaluation.modules import library_of
from gclint.network.explaining.classes import bases_of
from gclint.network.model import Network
from gclint.rule import Rule, all_rules
from gclint.run.check import check
from gclint.server.actions import _differences
from gclint.settings import Settings
from gclint.verify.model_files import ModelFiles
from tests.cache.shell import OWN
from tests.sample import BROKEN
from tests.terminal import Outcome, runner

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the limit on CPU time is one of POSIX")
Run = Callable[..., Outcome]
_SECONDS = 5


def _ends(work: Callable[[], object], gigabytes: float = 1) -> bool:
    """Return whether a fork does something within limits on its CPU time and memory."""
    child = os.fork()
    if not child:
        try:
            used = int(sum(resource.getrusage(resource.RUSAGE_SELF)[:2])) + 1
            memory = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_CPU, (used + _SECONDS, used + _SECONDS))
            resource.setrlimit(resource.RLIMIT_AS, (memory + int(gigabytes * (1 << 30)),) * 2)
            work()
            os._exit(0)
        except BaseException as error:
            sys.stderr.write(f"{type(error).__name__}: {error}")
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("before", ["", '"""', "'''", 'x = "'])
def test_strings_that_do_not_end_are_skipped_in_linear_time(before: str) -> None:
    def work() -> None:
        for parts in itertools.product(('"""', "'''", '\\"', "\\", "\n", '"', "'"), repeat=2):
            with pytest.raises(ValueError, match=r"\S"):
                toml.loads(f"{before}{''.join(parts) * 20_000}=")

    assert _ends(work)


def test_toml_takes_no_gigabytes() -> None:
    text = "".join(f"[a{number}.b.c.d]\n" for number in range(500_000))

    def work() -> None:
        with pytest.raises(ValueError, match="characters outside of strings"):
            toml.loads(text)

    assert _ends(work, gigabytes=0.5)


def test_a_lock_file_is_long_because_of_its_strings() -> None:
    entry = f'[[package]]\nname = "x"\nurl = "{"x" * 900}"\n'
    assert len(toml.loads(entry * 9_000)["package"]) == 9_000  # type: ignore[arg-type]


@pytest.fixture
def gclint(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    (tmp_path / "modeling_x.py").write_text(BROKEN)
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)


@pytest.mark.parametrize(
    ("name", "status"),
    [("a\0b.py", 2), ("a\ud800b.py", 2), ("a" * 5_000, 1), ("../" * 3_000 + "x.py", 1), ("a\udcff.py", 1)],
    ids=["nul", "surrogate", "long", "deep", "undecodable"],
)
def test_a_baseline_has_names_that_no_file_can_have(gclint: Run, name: str, status: int) -> None:
    entry = {"file": name, "rule": "GC001", "symbol": "X", "hash": "0", "count": 1}
    Path("baseline.json").write_text(json.dumps({"version": 1, "findings": [entry]}))
    found, _, err = gclint("--baseline", "baseline.json", ".")
    assert found == status, err
    assert len(err) < 10_000


def test_bases_that_many_ways_lead_to_are_followed_once(tmp_path: Path) -> None:
    """A run of models reads these before it starts anything."""
    names = [f"C{number}" for number in range(8)]
    bases = [f"class {name}_0(Unknown): pass\n" for name in names]
    for depth in range(1, 30):
        above = ", ".join(f"{name}_{depth - 1}" for name in names)
        bases += [f"class {name}_{depth}({above}): pass\n" for name in names]
    (tmp_path / "modeling_classes.py").write_text("".join(bases))
    for number in range(8):
        imports = "".join(f"from .m{other} import *\n" for other in range(8))
        (tmp_path / f"m{number}.py").write_text(imports)
    (tmp_path / "modeling_stars.py").write_text("from .m0 import *\nclass X(Unknown): pass\n")
    (tmp_path / "modeling_aliases.py").write_text(
        "".join(f"class X{number}(Unknown{number}): pass\n" for number in range(10_000)) + "# \n" * 500_000
    )

    def work() -> None:
        for path in tmp_path.glob("modeling_*.py"):
            assert not ModelFiles().defines_model(path)

    assert _ends(work)


def test_a_long_chain_of_classes_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "modeling_x.py"
    chain = "".join(f"class X{number}(X{number - 1}): pass\n" for number in range(1, 500))
    path.write_text(f"from transformers import PreTrainedModel\nclass X0(PreTrainedModel): pass\n{chain}")
    assert ModelFiles().defines_model(path)


def test_modules_around_are_neither_read_without_limit_nor_sought_above_everything(tmp_path: Path) -> None:
    (tmp_path / "modeling_x.py").write_text(
        f"from {'.' * len(tmp_path.parents)} import A\nfrom .huge import B\nclass X(A, B): pass\n"
    )
    with (tmp_path / "huge.py").open("wb") as stream:
        stream.truncate(4 << 30)

    def work() -> None:
        assert not ModelFiles().defines_model(tmp_path / "modeling_x.py")

    assert _ends(work)


def test_classes_that_inherit_from_many_are_judged_once(tmp_path: Path) -> None:
    path = tmp_path / "modeling_x.py"
    classes = "".join(
        f"class A{number}({', '.join(f'A{at}' for at in range(number)[-8:]) or 'MyModel'}): x\n"
        for number in range(400)
    )
    path.write_text(OWN + classes)

    def work() -> None:
        assert check(Project(Settings(), [path]), all_rules()).findings

    assert _ends(work)


@pytest.mark.parametrize(
    "ways",
    [
        "".join(f"        if flags[{n}]:\n            y{n} = self.embed_tokens(ids)\n" for n in range(30)),
        "".join(f"{'':{8 + n}}for _ in flags:\n" for n in range(40)) + f"{'':48}x = x\n",
        "".join(f"{'':{8 + n}}try:\n" for n in range(40))
        + f"{'':48}x = x\n"
        + "".join(f"{'':{8 + n}}except E:\n{'':{9 + n}}y{n} = x\n" for n in reversed(range(40))),
    ],
    ids=["tests", "loops", "handlers"],
)
def test_ways_through_a_function_that_multiply_are_not_all_followed(ways: str, tmp_path: Path) -> None:
    path = tmp_path / "modeling_x.py"
    start = "    def forward(self, ids, *flags):\n        x = self.embed_tokens(ids)\n"
    path.write_text(f"{OWN}class Model(MyModel):\n{start}{ways}        x[0] = 1\n        return x\n")

    def work() -> None:
        assert check(Project(Settings(), [path]), all_rules()).files

    assert _ends(work)


class _Endless(Rule):
    """Never ends for files of one name, which hold up no other."""

    code, name = "GC999", "endless"

    def check(self, network: Network) -> Iterable[Finding]:
        with interruption.limited():
            pass  # The end of one limit is not that of the one around it.
        while network.file.path.name == "modeling_slow.py":
            with suppress(Exception):
                [*range(1000)]
        return ()


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_file_that_takes_for_ever_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    monkeypatch.setattr(interruption, "SECONDS", 0.2)
    names = ["modeling_slow.py", "modeling_x.py", "modeling_y.py"]
    for name in names:
        (tmp_path / name).write_text(BROKEN)
    project = Project(Settings(), [tmp_path / name for name in names])
    before = signal.getsignal(signal.SIGVTALRM)
    found = check(project, [_Endless(), *all_rules()], jobs=jobs)
    assert [(each.path.name, "was given up" in each.message) for each in found.problems] == [(names[0], True)]
    assert {each.path.name for each in found.findings} == set(names[1:])
    assert (signal.getsignal(signal.SIGVTALRM), signal.getitimer(signal.ITIMER_VIRTUAL)[0]) == (before, 0)


def test_a_system_without_such_a_clock_has_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(signal, "SIGVTALRM")  # Windows has none.
    with interruption.limited():
        assert signal.getitimer(signal.ITIMER_VIRTUAL)[0] == 0


def test_bases_that_many_ways_lead_to_are_explained_once(tmp_path: Path) -> None:
    path = tmp_path / "modeling_x.py"
    chain = "".join(f"class B{at}(B{at - 1}, A{at - 1}, B{at - 1}): x\n" for at in range(1, 60))
    path.write_text(chain.replace("A", "B"))
    module = library_of(project := Project(Settings(), [path])).module(project.file(path))
    assert _ends(lambda: bases_of(module.classes["B59"]))


def test_a_repair_of_a_file_of_equal_lines_is_told_an_editor_at_once() -> None:
    before = "a\n" + "\n" * 20_000 + "b\n"
    assert _ends(lambda: [*_differences(Path("x.py"), before, before.replace("a", "c").replace("b", "d"))])


def test_names_of_what_is_returned_are_followed_once(tmp_path: Path) -> None:
    path = tmp_path / "modeling_x.py"
    lines = "".join(f"        v{at} = v{at + 1} if x else v{at + 1}\n" for at in range(40))
    path.write_text(
        OWN.replace("        return hidden_states +", f"{lines}        return v0\n        x = ", 1)
    )

    def work() -> None:
        assert check(Project(Settings(), [path]), all_rules()).findings

    assert _ends(work)


def test_names_of_what_changes_in_place_are_followed_once(tmp_path: Path) -> None:
    path = tmp_path / "modeling_x.py"
    lines = "".join(f"        v{at} = v{at + 1} if x else v{at + 1}\n" for at in reversed(range(40)))
    start = "        hidden_states = hidden_states + self.attention"
    path.write_text(BROKEN.replace(start, f"        v40 = hidden_states\n{lines}        v0.mul_(2)\n{start}"))

    def work() -> None:
        (found,) = check(Project(Settings(), [path]), all_rules()).findings
        assert found.fix is not None

    assert _ends(work)


def test_names_that_lead_to_others_a_thousand_times_are_followed(tmp_path: Path) -> None:
    path = tmp_path / "modeling_x.py"
    lines = "".join(f"        v{at + 1} = v{at}\n" for at in range(3000))
    start = "        hidden_states = hidden_states + self.attention"
    path.write_text(
        BROKEN.replace(start, f"        v0 = hidden_states\n{lines}        v3000.mul_(2)\n{start}")
    )
    result = check(Project(Settings(), [path]), all_rules())
    assert result.problems == ()
    (found,) = result.findings
    assert found.fix is not None
    assert found.fix.applicability is Applicability.UNSAFE


def test_what_is_under_finally_is_compiled_once() -> None:
    lines = (f"{' ' * at}try: f()\n{' ' * at}finally:\n" for at in range(40))
    text = "".join(lines) + " " * 40

    def work() -> None:
        assert compile_problem(Path("x.py"), f"{text}f()\n") is None
        assert "keyword argument repeated" in str(compile_problem(Path("x.py"), f"{text}f(a=1, a=2)\n"))

    assert _ends(work)


def test_an_environment_names_no_folder_that_cannot_be(gclint: Run) -> None:
    packages = Path("environment/lib/python3.11/site-packages")
    packages.mkdir(parents=True)
    Path("pyproject.toml").write_text('[tool.gclint]\nlibrary = "environment"\n')
    for added in (b"a\0b\n" + b"a" * 5_000, b"a\n" * 4_000_000):
        (packages / "x.pth").write_bytes(added)
        assert _ends(lambda: gclint("."))
        status, _, err = gclint(".")
        assert status == 2
        assert "transformers was not found" in err


def test_a_link_above_the_working_directory_leads_no_report_out(
    gclint: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("archive/models", "outside"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "archive/out").symlink_to(tmp_path / "outside")
    (tmp_path / "archive/models/modeling_x.py").write_text(BROKEN)
    monkeypatch.chdir(tmp_path / "archive/models")
    status, _, err = gclint("--output-file", "json:../out/report.json", ".")
    assert status == 2
    assert "is a link that leads out of" in err
    assert not any((tmp_path / "outside").iterdir())
    assert gclint("--output-file", "json:../report.json", ".")[0] == 1
