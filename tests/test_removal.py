"""Functions taken out of a text: what stood around them is separated as it has to be."""

from pathlib import Path

import pytest

from gclint.code.file import SourceFile
from gclint.edit.edits import edited
from gclint.edit.removal import remove_functions

CASES = {
    "the last method": """\
  class A:
      x = 1
-
-     def gone(self):
-         pass


  class B:
      pass
""",
    "a method between two others": """\
  class A:
      def one(self):
          pass

-     def gone(self):
-         pass
-
      def two(self):
          pass
""",
    "the first method, behind the header and a comment": """\
  class A:
      # What it is.

-     @decorated
-     def gone(self):
-         pass
-
      def two(self):
          pass
""",
    "a method with its comments, and not those of the next one": """\
  class A:
      x = 1
-     # Copied from somewhere.
-     # A second line.
-     def gone(self):  # behind it
-         pass
-         # still inside

      # Copied from elsewhere.
      def two(self):
          pass
""",
    "the only member": """\
  class A:
      # What it is.
-     def gone(self):
-         pass
+     pass


  class B(A): ...
""",
    "all members": """\
  class A:
-     def gone(self):
-         pass
+     pass
-
-     def gone_too(self):
-         pass


  x = 1
""",
    "the last of the file": """\
  class A:
      x = 1
-
-     def gone(self):
-         pass
""",
    "a function in a function": """\
  def f(x):
      y = x

-     def gone(z):
-         return z
-
      y = y + 1

-     def gone(z):
-         return z
      return y


  f(1)
""",
    "before another function": '''\
  def f(x):
      """Text."""
-     def gone(z):
-         return z

      def g(z):
          return z

      return g
''',
    "the end of a branch": '''\
  def f(x):
      if x:
          y = 1
-
-         def gone(z):
-             return """
- """
      else:
          y = 2
      return y
''',
}
"""Texts, each with what goes and what comes as in a diff."""


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("case", CASES)
def test_what_is_left(case: str, newline: str) -> None:
    before, after = _sides(case)
    assert removed(before.replace("\n", newline)) == after.replace("\n", newline)


def test_a_file_without_a_last_newline_stays_so() -> None:
    before, after = _sides("the last of the file")
    assert removed(before.rstrip("\n")) == after.rstrip("\n")


def _sides(case: str) -> tuple[str, str]:
    lines = CASES[case].splitlines(keepends=True)
    before, after = ("".join(line[2:] or "\n" for line in lines if line[0] != sign) for sign in "+-")
    return before, after


def removed(text: str) -> str:
    file = SourceFile(Path("file.py"), text.encode())
    gone = [each for each in file.outline.definitions if each.name.startswith("gone")]
    return edited(file.text, remove_functions(file, gone))
