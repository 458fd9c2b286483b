"""Trees without layout: they are LibCST's in all but layout, and in that too once it is asked for."""

import gc
import operator
from collections.abc import Iterator
from pathlib import Path

import libcst as cst
import pytest
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

import gclint
from gclint.network.evaluation.body import Body, TextPiece
from gclint.network.evaluation.walk import children, structure, walk
from gclint.source.bare import read_bare
from gclint.source.file import SourceFile
from gclint.source.fragment import Fragment, parse_definition
from gclint.source.tree import Tree

_STATEMENTS = (
    "x = y = f(a, *b, k=1, *c, **d)",
    "x: Tensor = None; self.y += 1.5e-3; del_ = -2j",
    "x: int",
    "return",
    "raise ValueError('a' 'b') from error",
    'assert x, f"{x!r:>{width}} and {y}"',
    "pass; break; continue",
    "yield",
    "x = yield from f(await_)",
    "x = await f(x)",
    "x = (yield), (a), ((b))",
    "x = a[1], a[b, 1:2], a[:], a[::2], a[i:], a[:i, ...], a[-1:(j)]",
    "x = not a and b or c and d or e",
    "x = a < b <= c != d is not None not in f",
    "x = (a + b) * -c ** +d // ~e % f @ g << h >> i & j | k ^ l",
    "a @= b; a //= c; a **= d; a >>= e; a <<= f; a &= g; a ^= h; a |= i; a %= j; a *= k; a /= l; a -= m",
    "x = a if b else c if d else e",
    "x = lambda a, /, b=1, *c, d, e=2, **f: (a, b)",
    "x = lambda *, a: a",
    "x = [*a, b], (*a, b), {*a, b}, {**a, 'b': c}, (), [], {}",
    "x = [a for a, b in c if d if e for f in g], {a for a in b}, {a: b for a in c}, f(a for a in b)",
    "if (n := len(a)) > 1:\n    pass\nelif b:\n    pass\nelse:\n    if c:\n        pass",
    "for a, *b in c:\n    d\nelse:\n    e",
    "while a:\n    b\nelse:\n    c",
    "with a as b, c as (d, e), f:\n    g",
    "with (a as b,\n      c):\n    g",
    "try:\n    a\nexcept (B, C) as d:\n    e\nexcept F:\n    g\nelse:\n    i\nfinally:\n    j",
    "try:\n    a\nexcept:\n    h",
    "@a.b(c)\n@d\ndef e(f, g: int = 1, /, h=None, *i: str, j, k: int = 2, **l) -> None:\n    '''Do.'''",
    "def e(*, a):\n    return a  # why\n    # the end",
    "x = f(\n    a,  # first\n    # second\n    b,\n)\n\n# behind",
    "x = r'a', b'b', u'c', '''d\ne''', \"it's\", 'say \"it\"', '\\'', 1_000, 0xFF, 1., .5",
    "x = a \\\n    + b",
)
_LEFT_TO_LIBCST = (
    "if a: b",
    "del a",
    "x = a[(b, c)]",
    "x = a[b::]",
    "x = 'é'",
    "x = 1\r\n",
    "\fx = 1",
    "async def a():\n    async for b in c:\n        pass",
    "import a",
    "class A:\n    pass",
    "global a",
    "match a:\n    case b:\n        pass",
)


def _places(module: cst.Module) -> dict[cst.CSTNode, tuple[int, int]]:
    spans = MetadataWrapper(module, unsafe_skip_copy=True).resolve(ByteSpanPositionProvider)
    return {node: (span.start, span.start + span.length) for node, span in spans.items()}


def _assert_alike(text: str) -> None:
    whole = cst.parse_module(text)
    tree = Tree(text, is_block=False)
    pairs = list(
        zip(
            (node for each in tree.body for node in walk(each)),
            (node for each in whole.body for node in walk(each)),
            strict=True,
        )
    )
    own = _places(whole)
    for bare, theirs in pairs:
        assert type(bare) is type(theirs)
        assert structure(bare) == structure(theirs)
        if bare in tree.places:
            assert tree.places[bare] == own[theirs], text
        elif isinstance(bare, cst.Call):
            # A formatted string's fields have no places that every Python knows.
            assert "f" in text
    assert tree.nodes >= {bare for bare, _ in pairs}
    assert tree.module.deep_equals(whole)
    assert list(tree.module.body) == list(tree.body)
    assert [bare for bare, _ in pairs] == [node for each in tree.module.body for node in walk(each)]
    assert _places(tree.module).keys() >= tree.places.keys()


@pytest.mark.parametrize("code", _STATEMENTS)
def test_code_is_read_as_libcst_reads_it(code: str) -> None:
    assert read_bare(f"{code}\n") is not None
    _assert_alike(f"{code}\n")


@pytest.mark.parametrize("code", _LEFT_TO_LIBCST)
def test_what_is_rare_is_left_to_libcst(code: str) -> None:
    assert read_bare(f"{code}\n") is None
    _assert_alike(f"{code}\n")


@pytest.mark.parametrize("code", [f"x = {'+'.join(['a'] * 3000)}\n", f"x = a{'.b' * 3000}\n", "x = '\0'\n"])
def test_what_is_endless_or_broken_is_left_to_libcst(code: str) -> None:
    assert read_bare(code) is None


def test_warnings_are_for_whoever_runs_the_code() -> None:
    assert read_bare("x = '\\d' if 1is 1else 2\n") is not None


def _pieces() -> Iterator[str]:
    for name in ("evaluation/scope.py", "gradient.py"):
        path = Path(gclint.__file__).parent / "network" / name
        file = SourceFile(path, path.read_bytes())
        for definition in file.outline.definitions:
            if not definition.is_class:
                for piece in Body.of_definition(file, definition)._pieces:
                    if isinstance(piece, TextPiece) and piece.parse():
                        assert piece.fragment is not None
                        yield piece.fragment._text


def test_statements_of_real_functions_are_read_as_libcst_reads_them() -> None:
    texts = set(_pieces())
    assert sum(read_bare(text) is not None for text in texts) > 0.8 * len(texts)
    for text in texts:
        _assert_alike(text)


@pytest.mark.parametrize("code", ["x = (\n", "  x = 1\n", "f() = 1 2\n", "x = 'a\n"])
def test_what_is_not_python_is_rejected(code: str) -> None:
    with pytest.raises(cst.ParserSyntaxError):
        Tree(code, is_block=False)


def test_layout_comes_when_it_is_asked_for() -> None:
    file = SourceFile(Path("a.py"), b"def f():\n    x = g( a ,b )  # why\n    return (x)\n")
    fragment = parse_definition(file, file.outline.definitions[0])
    call = next(node for node in walk(fragment.body[0]) if isinstance(node, cst.Call))
    first, second = call.args
    assert [type(node) for node in children(call)] == [cst.Name, cst.Arg, cst.Arg]
    assert isinstance(first.comma, cst.Comma)
    assert second.comma is cst.MaybeSentinel.DEFAULT
    assert fragment.source(call) == "g( a ,b )"
    assert cst.Module([]).code_for_node(call.with_changes(args=[second])) == "g( b )"


def test_layout_comes_to_each_tree_for_itself() -> None:
    texts = [f"x{number} = ( {number} )\n" for number in range(3)]
    trees = [Tree(text, is_block=False) for text in texts]
    lines = [cst.ensure_type(tree.body[0], cst.SimpleStatementLine) for tree in trees]
    values = [cst.ensure_type(line.body[0], cst.Assign).value for line in lines]
    assert [cst.Module([]).code_for_node(value) for value in values[::-1]] == ["( 2 )", "( 1 )", "( 0 )"]


def test_what_no_node_has_is_an_error() -> None:
    tree = Tree("x = 1\n", is_block=False)
    for node in (tree.body[0], cst.Name("x")):
        assert getattr(node, "nothing", None) is None
        with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
            operator.attrgetter("nothing")(node)


def test_a_tree_is_not_kept_for_its_layout() -> None:
    from gclint.source.tree import _bare

    gc.collect()
    before = len(_bare)
    tree = Tree("x = 'nobody else has this'\n", is_block=False)
    assert len(_bare) == before + 1
    del tree
    gc.collect()
    assert len(_bare) == before


def test_places_in_a_piece_are_those_in_its_file() -> None:
    code = "class A:\n    def f(self):\n        x = 1\n        return  g(x)\n"
    file = SourceFile(Path("a.py"), code.encode())
    start = code.index("        return")
    fragment = Fragment(file, start, len(code), " " * 8)
    call = next(node for node in walk(fragment.body[0]) if isinstance(node, cst.Call))
    assert fragment.span(call) == (code.index("g(x)"), code.index("g(x)") + 4)
    assert fragment.span(call.func) == (code.index("g(x)"), code.index("g(x)") + 1)
    assert fragment.holds(call)
    assert not fragment.holds(cst.Name("x"))
