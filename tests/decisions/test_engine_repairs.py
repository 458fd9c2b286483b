"""How a run exits, what a fix in another file asks for, and which options contradict each other."""

from __future__ import annotations

import pytest

from tests.decisions import reports
from tests.decisions.reports import Folder


@pytest.mark.parametrize(
    ("text", "options", "status"),
    [
        (reports.SAFE, ("--fix",), 0),
        (reports.UNSAFE, ("--fix", "--exit-zero"), 0),
        (reports.GOOD, ("--fix",), 0),
        # A diff that is not empty is something left to do, even if no finding would remain.
        (reports.SAFE, ("--diff",), 1),
        (reports.SAFE, ("--diff", "--exit-zero"), 0),
        (reports.SAFE, ("--ignore", "GC001"), 0),
        (reports.SAFE, ("--select", "GC002"), 0),
    ],
)
def test_the_exit_status_says_whether_something_is_left(
    folder: Folder, text: str, options: tuple[str, ...], status: int
) -> None:
    folder.write({"modeling_otter.py": text})
    assert folder.run(*options).status == status


_BASE = {"modeling_seal.py": reports.SAFE.replace("Otter", "Seal")}
_HEIR = {
    "modeling_otter.py": reports.SAFE.split("\n\n\nclass OtterLayer")[0]
    + "\nfrom modeling_seal import SealLayer\n\n\nclass OtterLayer(SealLayer):\n    pass\n"
    + reports.model().partition("\n\n\nclass OtterModel")[1]
    + reports.model().partition("\n\n\nclass OtterModel")[2]
}


@pytest.mark.parametrize(
    ("given", "codes"),
    [
        ((), ["modeling_seal.py"]),
        (("modeling_seal.py",), ["modeling_seal.py"]),
    ],
)
def test_a_layer_of_another_file_is_reported_where_it_has_to_be_changed(
    folder: Folder, given: tuple[str, ...], codes: list[str]
) -> None:
    folder.write({**_BASE, **_HEIR})
    found = folder.run("--output-format", "json", *given).data
    assert [each["filename"] for each in found if each["symbol"] == "SealLayer"] == codes
    folder.run("--fix", *given)
    assert "class SealLayer(GradientCheckpointingLayer)" in folder.read("modeling_seal.py")
    assert folder.read() == _HEIR["modeling_otter.py"]
    assert folder.run().status == 0


def test_a_file_that_was_not_given_is_not_changed_and_the_fix_says_so(folder: Folder) -> None:
    folder.write({**_BASE, **_HEIR})
    before = folder.read("modeling_seal.py")
    done = folder.run("--fix", "modeling_otter.py")
    assert (done.status, folder.read("modeling_seal.py")) == (1, before)
    assert "no fix: the fix also changes modeling_seal.py; pass it to gclint as well" in done.out
    assert folder.run("--fix", "modeling_otter.py", "modeling_seal.py").status == 0


@pytest.mark.parametrize(
    "options",
    [
        ("--statistics", "--output-format", "github"),
        ("--base-ref", "main"),
        ("--summary", "summary.md"),
        ("--verify",),
        ("--resume", "--fix"),
        ("--add-ignores", "--write-baseline", "known.json"),
        ("--write-baseline", "known.json", "--baseline", "known.json"),
        ("--write-baseline", "known.json", "--diff"),
        ("--write-baseline", "known.json", "--statistics"),
        ("--python", "python3"),
        ("--device", "cpu"),
    ],
)
def test_options_that_contradict_each_other_are_refused_and_nothing_is_written(
    folder: Folder, options: tuple[str, ...]
) -> None:
    folder.write({"modeling_otter.py": reports.SAFE})
    done = folder.run(*options)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("Usage: ")
    assert [each.name for each in folder.path.iterdir()] == ["modeling_otter.py"]
    assert folder.read() == reports.SAFE
