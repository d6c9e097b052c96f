"""Files and functions stay small enough to be read in one sitting."""

from __future__ import annotations

import ast
import warnings

FILE_LINES_MAX = 500
FILE_LINES_LARGE = 400
FUNCTION_LINES_MAX = 60


def test_no_file_is_longer_than_a_reader_can_hold(python_files):
    too_long = [f"{file.name}: {len(file.lines)}" for file in python_files if len(file.lines) > FILE_LINES_MAX]
    assert not too_long, f"over {FILE_LINES_MAX} lines is two ideas in one file; split it: {too_long}"


def test_files_that_grow_large_are_named_in_good_time(source_files):
    large = [file.name for file in source_files if FILE_LINES_LARGE < len(file.lines) <= FILE_LINES_MAX]
    if large:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.warn(f"over {FILE_LINES_LARGE} lines, think of splitting: {large}", stacklevel=1)


def test_no_function_is_longer_than_a_screen(python_files):
    too_long = [
        f"{file.name}:{node.lineno} {node.name}: {length}"
        for file in python_files
        for node in ast.walk(file.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := _body_lines(node)) > FUNCTION_LINES_MAX
    ]
    assert not too_long, f"functions over {FUNCTION_LINES_MAX} lines; say the steps as functions: {too_long}"


def _body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1
