"""Every example of the documentation runs."""

from __future__ import annotations

import doctest
import pathlib

import marq_datafusion

PAGE = pathlib.Path(__file__).parent.parent / "README.md"


def test_docstrings_run(in_folder_of_trips: None) -> None:
    found = doctest.testmod(marq_datafusion)
    assert found.attempted > 5 and found.failed == 0


def test_the_page_runs(in_folder_of_trips: None) -> None:
    found = doctest.testfile(str(PAGE), module_relative=False)
    assert found.attempted > 3 and found.failed == 0
