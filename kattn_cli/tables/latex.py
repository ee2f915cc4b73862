"""A table as LaTeX, ready to be \\input: booktabs, everything escaped, with caption and label."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from kattn_cli.tables.text import Table

NEEDS = "% needs \\usepackage{booktabs,graphicx,longtable}"
WIDE = 95
"""Letters in a row from which on a table is made as narrow as the text."""
TALL = 40
"""Rows from which on a table goes over several pages."""
LONG = 34
"""Letters in a column of words from which on its lines are broken."""
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "−": "$-$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "≈": r"$\approx$",
    "≠": r"$\neq$",
    "→": r"$\to$",
    "∞": r"$\infty$",
    "∝": r"$\propto$",
    "√": r"$\surd$",
    "‖": r"$\|$",
    "·": r"$\cdot$",
    "…": r"\ldots{}",
    "–": "--",
    "\N{NO-BREAK SPACE}": "~",
    "§": r"\S{}",
    "ℓ": r"$\ell$",
    "∈": r"$\in$",
    "Σ": r"$\Sigma$",
    "Π": r"$\Pi$",
    "Λ": r"$\Lambda$",
    "Δ": r"$\Delta$",
}
_SPECIAL |= {one: rf"$\{unicodedata.name(one).rpartition(' ')[2].lower()}$" for one in "αβγδεζηθικμνξπρστυφχψω"}
_SPECIAL["λ"] = r"$\lambda$"  # which Unicode calls LAMDA
_SPECIAL |= {mark: f"$^{{{digit}}}$" for digit, mark in zip("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻", strict=True)}
_SPECIAL |= {mark: f"$_{{{digit}}}$" for digit, mark in zip("0123456789", "₀₁₂₃₄₅₆₇₈₉", strict=True)}
_SPECIAL |= {"ᵢ": "$_{i}$", "ⱼ": "$_{j}$"}


_ACCENTS = {"\N{COMBINING TILDE}": "tilde", "\N{COMBINING CIRCUMFLEX ACCENT}": "hat", "\N{COMBINING MACRON}": "bar"}


def escaped(text: str) -> str:
    """Return plain text for LaTeX: its special letters, and signs that pdfLaTeX does not know, are written out."""
    parts: list[str] = []
    for letter in unicodedata.normalize("NFC", text):
        if letter in _ACCENTS and parts:
            parts[-1] = rf"$\{_ACCENTS[letter]}{{{parts[-1].strip('$')}}}$"
        else:
            parts.append(_SPECIAL.get(letter, letter))
    return "".join(parts)


def render(table: Table) -> str:
    """Return a table with caption and label ``tab:<name>``: a wide one scaled to the text, a tall one over pages."""
    head, *body = ([" ".join(cell.split()) for cell in row] for row in [table.columns, *table.rows])
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    columns = "".join(_column(table.is_words(at), width) for at, width in enumerate(widths))
    rows = [_row(cells, [(at, column) in table.bold for column in range(len(cells))]) for at, cells in enumerate(body)]
    title = rf"\caption{{{escaped(table.caption)}}}\label{{tab:{table.name}}}"
    inside = [r"\toprule", _row(head, [False] * len(head)), r"\midrule"]
    if len(rows) > TALL:
        tall = [rf"\begin{{longtable}}{{@{{}}{columns}@{{}}}}", rf"{title} \\", *inside, r"\endhead", *rows]
        return _lines(r"{\scriptsize\setlength{\tabcolsep}{3pt}", *tall, r"\bottomrule", r"\end{longtable}", "}")
    scaled = sum(min(width, LONG) for width in widths) > WIDE
    before, after = (r"\resizebox{\textwidth}{!}{%", "}") if scaled else ("{%", "}")
    tabular = [rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}", *inside, *rows, r"\bottomrule", r"\end{tabular}"]
    return _lines(
        r"\begin{table}[tbp]", r"\centering\small", title, before, *tabular[:-1], tabular[-1] + after, r"\end{table}"
    )


def _lines(*lines: str) -> str:
    return "\n".join([NEEDS, *lines]) + "\n"


def _column(words: bool, width: int) -> str:
    if not words:
        return "r"
    return "p{5.5cm}" if width > LONG else "l"


def _row(cells: Sequence[str], bold: Sequence[bool]) -> str:
    texts = [escaped(cell) for cell in cells]
    parts = [rf"\textbf{{{text}}}" if strong and text else text for text, strong in zip(texts, bold, strict=True)]
    return " & ".join(parts) + r" \\"
