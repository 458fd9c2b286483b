"""Tokens are those of Python, whatever Python runs; and the same tokens are the same code."""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import sysconfig
import tokenize
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gclint.code.tokens import TokenKind, code_tokens, one_line, tokens

_LAYOUT = (TokenKind.NEWLINE, TokenKind.JOIN)


def _same_code(one: str, other: str) -> bool:
    return code_tokens(one) == code_tokens(other)


def _texts(text: str) -> list[str]:
    return [token.text for token in tokens(text) if token.kind not in _LAYOUT]


# -- what Python says

_IGNORED = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


def _tokenized(text: str) -> Iterator[str]:
    """Yield what ``tokenize`` finds, formatted strings in one piece as it gave them before Python 3.12."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    depth, first = 0, 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        name = tokenize.tok_name[token.type]
        if name in ("FSTRING_START", "TSTRING_START"):
            first = first if depth else starts[token.start[0] - 1] + token.start[1]
            depth += 1
        elif name in ("FSTRING_END", "TSTRING_END"):
            depth -= 1
            if depth == 0:
                yield text[first : starts[token.end[0] - 1] + token.end[1]]
        elif depth == 0 and token.type not in _IGNORED:
            yield token.string


def test_the_standard_library_has_the_tokens_that_python_finds() -> None:
    library = Path(sysconfig.get_path("stdlib"))
    files = sorted(library.glob("*.py"))[::5]
    assert len(files) > 20
    for path in files:
        text = path.read_text(encoding="utf-8")
        # `tokenize` and `splitlines` do not agree on where a line ends.
        if "\f" not in text:
            assert _texts(text) == list(_tokenized(text)), path


# -- any text

_PIECES = (
    *("'", '"', "'''", '"""', "\\", "\n", "\r", "\r\n", "\f", " ", "\t", "#", "{", "}", "{{", "}}", "(", ")"),
    *("f'", 'f"', 'f"""', "rf'''", 'T"', "bR'", "u'", "x", "if", "1", "1_0e-5j", ".", "...", ":", ":=", "!="),
    *("!", "!r", "=", "->", "\\N{", "é", "\0", "\x0b", "\u2028", "\ufeff", "$", "²", ",", ";", "lambda"),
)
_ANY_TEXT = st.lists(st.sampled_from(_PIECES), max_size=30).map("".join) | st.text(max_size=30)
_settings = settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


@given(_ANY_TEXT, st.integers(0, 5), st.integers(0, 30))
@_settings
def test_tokens_cover_any_text(text: str, start: int, length: int) -> None:
    for first, end in ((0, None), (min(start, len(text)), min(start + length, len(text)))):
        position = first
        for token in tokens(text, first, end):
            assert token.text
            assert not text[position : token.start].strip(" \t\f")
            assert text[token.start : token.end] == token.text
            position = token.end
        assert not text[position:end].strip(" \t\f")


@given(_ANY_TEXT)
@_settings
def test_any_text_can_be_asked_about(text: str) -> None:
    assert "\n" not in one_line(text)


_OPENED = ('"""', "'", 'f"{', "f'''{", 'f"{x:', 'f"{a"', "f'{'", 'f"{{', "rf'\\{", 'f"\\N{', "f'\\", '"\\')
_REPEATED = (
    "(",
    "(]",
    "{:",
    "\\",
    "\\\n",
    "#\n",
    "\r",
    " ",
    "x",
    "1_",
    "1e",
    ".",
    "a,)",
    "(a,",
    "lambda:",
    *_OPENED,
)
_LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
from gclint.code.tokens import *
opened, repeated = eval(sys.argv[1])
for piece in opened:
    list(tokens(piece * (200_000 // len(piece))))
for piece in repeated:
    text = piece * (15_000 // len(piece))
    code_tokens(text, comments=True), one_line(text)
    list(tokens(f"class A({text}"))
"""


def test_no_text_takes_more_than_linear_time() -> None:
    pytest.importorskip("resource")
    subprocess.run([sys.executable, "-c", _LIMITED, repr((_OPENED, _REPEATED))], check=True)


# -- strings


@pytest.mark.parametrize(
    "string",
    [
        "''",
        '"a\'b"',
        r"'\''",
        r'"\\"',
        "'''a'b''c\n'''",
        r'"""\""""',
        '"a\\\nb"',
        '"a\\\r\nb"',
        r"rb'\''",
        r'Rb"\""',
        "BR''",
        "u'a'",
        "f''",
        "F'{x}'",
        "f'{{'",
        "f'}}'",
        "f'{{{x}}}'",
        "f'{ {1: 2}[1] }'",
        "f'{x:%H:%M}'",
        "f'{x:{y}:{z}}'",
        "f'{x = }'",
        "f'{x != y}'",
        "f'{(lambda: 1)()}'",
        "f'{x:=5}'",
        r"f'''{'\n'}'''",
        'f"""a"b""c{d}"""',
        r"f'\N{DASH}{x}'",
        r"f'{x:\N{DASH}>3}'",
        r"f'\{x}'",
        r"rf'\{x:\d}'",
        r"fr'\N{x}'",
        r"fR'{x}\''",
        "f'{x}\\\n'",
        "t'{x}'",
        "Rt'''{x:{y!r}}'''",
        "f'{a[b:c]}'",
        "f'{x:a{{b}}c}'",
    ],
)
@pytest.mark.parametrize("around", ["{}", "x = {} + 1", "if{}else 2", "({})", "{};y", "{} # '", "1 if{}"])
def test_a_string_is_one_token(string: str, around: str) -> None:
    text = around.format("@").replace("@", string)
    prefixed = string[0] not in "'\""
    if "if@" in around.replace("{}", "@") and prefixed:
        text = text.replace("if", "if ")
    found = [token for token in tokens(text) if token.kind is TokenKind.STRING]
    assert [token.text for token in found] == [string]


@pytest.mark.parametrize(
    "string",
    [
        'f"{x!r:>{w}} {d["k"]}"',
        'f"{x!r:>{w + d["k"]}}"',
        "f'{f'{f'{1}'}'}'",
        'f"{f\'{f"{1}"}\'}"',
        'f"{"}"}"',
        'f"{"{"}"',
        'f"{\'"\'}"',
        'f"""{"""a"""}"""',
        "tr'{t'{x}'}'",
    ],
)
def test_a_string_that_holds_its_own_quotes_is_one_token_with_its_line(string: str) -> None:
    assert _texts(f"({string} )\nx") == ["(", f"{string} )", "x"]
    assert not _same_code(f"{string} + x", f"{string}+ x")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'a\nx'", ["'a", "x", "'"]),
        ('"a\\', ['"a', "\\"]),
        ("'''a\nb", ["'''a\nb"]),
        ("f'{x}\ny", ["f'{x}", "y"]),
        ("f'{x:\ny", ["f'{x:", "y"]),
        ("f'{x", ["f'{x"]),
        ("f'{x:y' z\ny", ["f'{x:y' z", "y"]),
        ("off'a'", ["off", "'a'"]),
        ("f 'a'", ["f", "'a'"]),
        ("a\rb # c\rd", ["a", "b", "# c", "d"]),
        ("a\\\rb\\ c", ["a", "b", "\\", "c"]),
        ("0xfor x", ["0xf", "or", "x"]),
        ("1if x", ["1", "if", "x"]),
        ("1.__a", ["1.", "__a"]),
        ("1..a", ["1.", ".", "a"]),
        (
            "a**=b//c>>=d->e:=f!=g...",
            ["a", "**=", "b", "//", "c", ">>=", "d", "->", "e", ":=", "f", "!=", "g", "..."],
        ),
        ("a\u0301 x\U000e0100?$", ["a\u0301", "x\U000e0100", "?", "$"]),
    ],
)
def test_odd_text_has_these_tokens(text: str, expected: list[str]) -> None:
    assert _texts(text) == expected


# -- the same code

_SAME = [
    ("f(a, b)", "f(  # c\n    a,\n    b,\n)"),
    ("f(a)", "f(a,)"),
    ("[a]", "[a,]"),
    ("x[[a]]", "x[[a,]]"),
    ("(a, b)", "(a, b,)"),
    ("{a}", "{a,}"),
    ("a.match(b)", "a.match(b,)"),
    ("f(a)(b)", "f(a)(b,)"),
    ("f[a](b)", "f[a](b,)"),
    ("a+b", "a + \\\n    b"),
    ("'a' 'b'", "'a'  # c\n    'b'"),
    ("a <b", "a < b"),
    ("'''\r\n'''", "'''\n'''"),
]
_DIFFERENT = [
    ('f("#local")', 'f("#global")'),
    ("f('a  b')", "f('a b')"),
    ("f('a, )')", "f('a)')"),
    ("f('( a')", "f('(a')"),
    ("f'{x }'", "f'{x}'"),
    ("f'{x = }'", "f'{x=}'"),
    ("f'a  {x}'", "f'a {x}'"),
    ("'a'", '"a"'),
    ("'a'", "b'a'"),
    ("'a' 'b'", "'ab'"),
    ("(a,)", "(a)"),
    ("x[a,]", "x[a]"),
    ("return (a,)", "return (a)"),
    ("match (a,)", "match (a)"),
    ("x = f\n(a,) = b", "x = f\n(a) = b"),
    ("f\n[a,]", "f\n[a]"),
    ("a < -b", "a <- b and c"),
    ("a = =b", "a == b"),
    ("1 .a", "1. a"),
    ("ab", "a b"),
    ("notx", "not x"),
    ("f(*a)", "f(a)"),
]


@pytest.mark.parametrize(("one", "other"), _SAME)
def test_layout_and_comments_make_no_difference(one: str, other: str) -> None:
    assert _same_code(one, other)
    assert ast.dump(ast.parse(f"({one}\n)")) == ast.dump(ast.parse(f"({other}\n)"))


@pytest.mark.parametrize(("one", "other"), _DIFFERENT)
def test_everything_else_does(one: str, other: str) -> None:
    assert not _same_code(one, other)


def test_comments_can_be_a_part_of_code() -> None:
    assert code_tokens("f(a,  # b\n)") == ["f", "(", "a", ")"]
    assert code_tokens("f(a,  # b\n)", comments=True) == ["f", "(", "a", "# b", ")"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f(  # c\n    a,\n    b = 1,\n)", "f(a, b = 1)"),
        ("a  +\\\n b", "a + b"),
        ("f('a  # b')", "f('a  # b')"),
        ("'''a\n  b'''", "'''a b'''"),
        ("(a,)", "(a,)"),
    ],
)
def test_code_is_shown_in_one_line(text: str, expected: str) -> None:
    assert one_line(text) == expected


_ATOMS = ("a", "1", "'b'", '"#c"', "f'{a }'", "f'{a:>{b}}'", "...", "None")
_GAPS = ("", " ", "  ", "\n", " # x\n", "\\\n", "\t", "\f")


@st.composite
def _expressions(draw: st.DrawFn) -> list[str]:
    """Draw an expression as a list of tokens; a comma that may be left out is an item ``,?``."""

    def expression(depth: int) -> list[str]:
        kind = draw(st.integers(0, 9)) if depth else 0
        if kind < 2:
            return [draw(st.sampled_from(_ATOMS))]
        one, other = expression(depth - 1), expression(depth - 1)
        return {
            2: ["(", *one, ")", "(", *other, ",?", ")"],
            3: ["a", "(", "*", *one, ",", "b", "=", *other, ",?", ")"],
            4: ["(", *one, ",", ")"],
            5: ["(", *one, ",", *other, ",?", ")"],
            6: ["[", *one, ",?", "]", "[", *other, ":", "]"],
            7: [
                "(",
                *one,
                draw(st.sampled_from(("+", "if 1 else", "<", "- -", "**", "and not"))),
                *other,
                ")",
            ],
            8: ["{", *one, ",?", "}", ".", "a", "[", *other, ",", "]"],
            9: ["(", "lambda", "a", ":", *one, ")"],
        }[kind]

    return expression(3)


@st.composite
def _laid_out(draw: st.DrawFn, items: list[str]) -> str:
    """Draw a layout of an expression, as it may stand between brackets."""
    text = ""
    for item in items:
        if item == ",?":
            item = draw(st.sampled_from((",", "")))
        gap = draw(st.sampled_from(_GAPS))
        text += item if item in _ATOMS else item.replace(" ", gap or " ")
        text += gap or (" " if item[-1:].isalnum() else "")
    return text


@given(_expressions(), st.data())
@_settings
def test_an_expression_stays_the_same_in_any_layout(items: list[str], data: st.DataObject) -> None:
    one, other = (f"({data.draw(_laid_out(items))})" for _ in range(2))
    assert _dump(one) == _dump(other) is not None
    assert _same_code(one, other)
    assert _dump(one_line(one)) == _dump(one)


@given(_expressions(), st.data())
@_settings
def test_what_has_the_same_tokens_is_the_same_to_python(items: list[str], data: st.DataObject) -> None:
    one = data.draw(_laid_out(items))
    start = data.draw(st.integers(0, len(one)))
    end = data.draw(st.integers(start, min(start + 2, len(one))))
    other = one[:start] + data.draw(st.sampled_from(("", *_GAPS, ",", "#", "'", "(", ")", "a"))) + one[end:]
    if _same_code(one, other):
        assert _dump(other) in (None, _dump(one))


def _dump(expression: str) -> str | None:
    """Return Python's tree; None of what is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.dump(ast.parse(f"(\n{expression}\n)", mode="eval"))
    except SyntaxError:
        return None
