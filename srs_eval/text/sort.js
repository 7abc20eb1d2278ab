// Headings sort their table: up, down, and as it was. Text without a number comes last.
function makeSortable(table) {
  const value = (row, n) => row.cells[n].dataset.value ?? row.cells[n].firstChild?.textContent ?? "";
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
      const order = next[head.ariaSort] ?? "ascending";
      sort(n, order);
      const detail = { key: head.dataset.key, order };
      table.dispatchEvent(new CustomEvent("sorted", { bubbles: true, detail }));
    };
  }
  // Sort by the heading of a key; an unknown key or order leaves the table as it was.
  table.sortBy = (key, order) => {
    const n = heads.findIndex(head => head.dataset.key === key);
    sort(n, n >= 0 && ["ascending", "descending"].includes(order) ? order : "none");
  };
}
for (const table of document.querySelectorAll("table.sortable")) makeSortable(table);
