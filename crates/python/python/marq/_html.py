"""Tables in notebooks."""

from __future__ import annotations

import html

from ._marq import Table

escape = html.escape


def table(of: Table, rows: int = 10, note: str | None = None) -> str:
    """A table of HTML with the first rows."""
    names, types = of.column_names, of.schema.types
    head = "".join(
        f"<th>{escape(name)}<br><small>{escape(kind)}</small></th>"
        for name, kind in zip(names, types)
    )
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(text[:200])}</td>" for text in row) + "</tr>"
        for row in of._texts(rows)
    )
    text = note or f"{of.num_rows} rows, {of.num_columns} columns"
    return (
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"<small>{escape(text)}</small>"
    )
