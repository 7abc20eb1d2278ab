"""The tables of a comparison, read back from each format as lists of rows of plain text."""

import html as entities
import re


def tables_of_html(page):
    """Tables by their ids."""
    tables = {}
    for key, section in re.findall(r'<h3 id="(\w+)"(.*?)</table>', page, re.DOTALL):
        rows = re.findall(r"<tr.*?</tr>", section, re.DOTALL)
        tables[key] = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL) for row in rows]
    return {
        key: [[from_html(cell) for cell in row] for row in rows] for key, rows in tables.items()
    }


def from_html(cell):
    return entities.unescape(re.sub(r"<[^>]+>", "", cell.replace("<small>", " ")))


def tables_of_markdown(text):
    """Titles and tables, in order."""
    for section in text.split("\n## ")[1:]:
        title, *lines = section.splitlines()
        lines = [line for line in lines if line.startswith("|")]
        rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in (lines[0], *lines[2:])]
        yield from_markdown(title), [[from_markdown(cell) for cell in row] for row in rows]


def from_markdown(text):
    return entities.unescape(text).replace("\\", "").strip(" *")


def tables_of_latex(text):
    """Tables by their labels."""
    tables = {}
    for section in text.split("\\label{tab:")[1:]:
        key, _, rest = section.partition("}")
        body = rest.partition("\\toprule")[2].partition("\\bottomrule")[0].replace("\\midrule", "")
        rows = [re.split(r"(?<!\\)&", row) for row in body.split("\\\\") if row.strip()]
        tables[key] = [[from_latex(cell) for cell in row] for row in rows]
    return tables


def from_latex(cell):
    for written, sign in ((r"\textless{}", "<"), (r"\textgreater{}", ">"), (r"$\geq$", "≥")):
        cell = cell.replace(written, sign)
    return re.sub(r"\\textbf|[{}\\]", "", cell).strip()


def tables_of_terminal(text):
    """Titles and tables; their columns are where the dashes below their headings are."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if re.fullmatch(r"-+(?:  -+)+", line):
            spans = [found.span() for found in re.finditer("-+", line)]
            end = next((n for n, row in enumerate(lines) if n > number and not row.strip()), None)
            rows = [lines[number - 1], *lines[number + 1 : end]]
            yield (
                lines[number - 2],
                [[row[slice(*span)].strip() for span in spans] for row in rows],
            )
