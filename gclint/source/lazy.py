"""Properties that are computed once, without the lock that ``functools`` takes before Python 3.12."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property:  # noqa: N801
        """Compute an attribute when it is first asked for; no two threads of a run ask for one."""

        def __init__(self, function: Any) -> None:
            """Remember what computes it."""
            self.function = function
            self.__doc__ = function.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            """Remember under which name it is kept."""
            self.name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            """Compute it; from then on the instance has an attribute of this name, which is found first."""
            if instance is None:
                return self
            value = instance.__dict__[self.name] = self.function(instance)
            return value


__all__ = ["cached_property"]
