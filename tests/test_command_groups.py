"""Groups of commands with a default, and groups of options, on a command line made up for that."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from gclint.cli.options import DefaultGroup, GroupedCommand, LazyCommand, option_group
from gclint.wording import closest

_drinks = option_group("Drinks")
_cakes = option_group("Cakes")


@click.command("order", cls=GroupedCommand)
@click.option("--loud", is_flag=True, help="Shout.")
@_drinks("--tea", is_flag=True, help="Order tea.")
@_cakes("--scone", is_flag=True, help="Order a scone.")
@_drinks("--milk", is_flag=True, help="With milk.", hidden=True)
@_drinks("--cups", metavar="N", default=1, show_default=True, help="How many.")
@click.argument("guests", nargs=-1)
def _order(guests: tuple[str, ...], **options: object) -> None:
    """Order something."""
    click.echo(f"order {' '.join(guests)} {' '.join(name for name in options if options[name] is True)}")


@click.command("pay")
@click.argument("guests", nargs=-1)
def _pay(guests: tuple[str, ...]) -> None:
    """Pay for it."""
    click.echo(f"pay {' '.join(guests)}")


_LAZY = LazyCommand("leave", module=__name__, attribute="leave", short_help="Leave the room.")
_cafe = DefaultGroup("cafe", default=_order, others=[_pay, _LAZY], examples="  cafe Ann   order for Ann")


@click.command()
def leave() -> None:
    """Leave."""
    click.echo("left")


def _outcome(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(_cafe, list(arguments), prog_name="cafe")
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        ([], "order  "),
        (["Ann"], "order Ann "),
        (["order", "Ann"], "order Ann "),
        (["order", "order"], "order order "),
        (["Ann", "pay"], "order Ann pay "),
        (["--tea", "pay"], "order pay tea"),
        (["Ann", "--tea"], "order Ann tea"),
        (["--", "pay"], "order pay "),
        (["pay", "pay"], "pay pay"),
        (["pay", "--", "--tea"], "pay --tea"),
        (["leave"], "left"),
        (["./pay"], "order ./pay "),
    ],
)
def test_only_the_first_argument_can_be_a_command(arguments: list[str], output: str) -> None:
    assert _outcome(*arguments) == (0, f"{output}\n")


@pytest.mark.parametrize("word", ["payy", "Pay", "ordr", "ORDER", "leav", "help"])
def test_a_word_like_a_command_is_not_taken_for_an_argument(
    word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, output = _outcome(word, "Ann")
    assert status == 2
    assert f"'{word}' is not a command, file or folder; did you mean '" in output
    (tmp_path / word).symlink_to("nowhere")
    assert _outcome(word, "Ann") == (0, f"order {word} Ann \n")


@pytest.mark.parametrize("word", ["Ann", "paying", "reorder.py", "pay.py", "a" * 5000])
def test_other_words_are_arguments(word: str) -> None:
    assert _outcome(word)[0] == 0


def test_the_help_is_that_of_the_default_with_commands_and_groups_of_options() -> None:
    status, output = _outcome("--help")
    assert status == 0
    assert (
        output
        == """\
Usage: cafe [OPTIONS] [GUESTS]...
   or: cafe COMMAND [ARGS]...

  Order something.

  Examples:
    cafe Ann   order for Ann

Commands:
  order  Order something.
  pay    Pay for it.
  leave  Leave the room.

Drinks:
  --tea     Order tea.
  --cups N  How many.  [default: 1]

Cakes:
  --scone  Order a scone.

Other options:
  --loud  Shout.
  --help  Show this message and exit.

  Only the first argument can be a command; the default is 'order'. For a file
  or folder with the name of a command, write './NAME'.
"""
    )


def test_the_help_of_the_default_alone_has_the_same_options() -> None:
    status, output = _outcome("order", "--help")
    assert status == 0
    assert output.startswith("Usage: cafe order [OPTIONS] [GUESTS]...\n")
    assert "\nDrinks:\n" in output
    assert "Commands:" not in output


def test_a_lazy_command_has_its_own_help() -> None:
    assert _outcome("leave", "--help")[1].startswith("Usage: cafe leave [OPTIONS]\n\n  Leave.\n")


@pytest.mark.parametrize(
    ("word", "expected"),
    [("chekc", "check"), ("checks", "check"), ("VERFY", "verify"), ("checkpoint", None), ("", None)],
)
def test_closest(word: str, expected: str | None) -> None:
    assert closest(word, ["check", "verify"]) == expected


def test_modules_are_not_rules() -> None:
    assert closest("modules", ["rules"]) is None
