"""Errors of ours as a sentence, not as a page of Python's stack with the sentence at its end.

Spark tells what a Python worker raised as the worker wrote it down. Where the error is one of Zurau's, which say what
is wrong and what to do, the stack is left out. The worker ends with the error, so nothing else is told differently.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from zurau.errors import ZurauError

P = ParamSpec("P")
T = TypeVar("T")
#: Spark's workers look at it when they write an error down.
HIDE_TRACEBACK = "SPARK_HIDE_TRACEBACK"


@contextmanager
def plainly() -> Iterator[None]:
    try:
        yield
    except ZurauError:
        os.environ[HIDE_TRACEBACK] = "1"
        raise


def told_plainly(function: Callable[P, T]) -> Callable[P, T]:
    @wraps(function)
    def told(*args: P.args, **kwargs: P.kwargs) -> T:
        with plainly():
            return function(*args, **kwargs)

    return told
