// Headings sort their table: up, down, and as it was. Text without a number comes last.
function makeSortable(table) {
  const value = (row, n) => row.cells[n].firstChild?.textContent ?? "";
  // A name that begins with a digit, such as 7B, is no number.
  const isNumber = text => /^\W*\d[\d.,]*(e[-+]?\d+)?(?![\w.-])/.test(text);
  const number = text => parseFloat(isNumber(text) ? text.replace(/[,[<>]/g, "") : "");
  function compare(a, b, sign) {
    const [x, y] = [number(a), number(b)];
    if (isNaN(x) && isNaN(y)) return sign * a.localeCompare(b);
    return isNaN(x) - isNaN(y) || sign * (x - y);
  }
  const [heads, body] = [[...table.tHead.rows[0].cells], table.tBodies[0]];
  const first = [...body.rows];
  function sort(n, order) {
    for (const [m, head] of heads.entries()) head.ariaSort = m === n ? order : "none";
    const rows = [...first];
    const sign = order === "ascending" ? 1 : -1;
    if (order !== "none") rows.sort((a, b) => compare(value(a, n), value(b, n), sign));
    body.append(...rows);
  }
  for (const [n, head] of heads.entries()) {
    if (!head.hasChildNodes()) continue;
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.onclick = () => {
      const next = { ascending: "descending", descending: "none" };
      sort(n, next[head.ariaSort] ?? "ascending");
    };
  }
}
for (const table of document.querySelectorAll("table.sortable")) makeSortable(table);
