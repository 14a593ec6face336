"use strict";
// Sorts and filters the tables. The page is complete without it.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = Array.from(table.tHead.rows[0].cells);
  const key = (row, i) => {
    const cell = row.cells[i];
    const number = cell.dataset.sort;
    return number === undefined ? cell.textContent : parseFloat(number);
  };
  heads.forEach((head, i) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = Array.from(body.rows);
      rows.sort((a, b) => {
        const x = key(a, i), y = key(b, i);
        const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
        return down ? -order : order;
      });
      body.append(...rows);
    });
  });
  const column = table.dataset.filter;
  if (column === undefined) continue;
  const values = [...new Set(Array.from(body.rows, (row) => row.cells[column].textContent))];
  if (values.length < 2) continue;
  const label = document.createElement("label");
  label.className = "filter";
  label.textContent = "Show " + heads[column].textContent + ":";
  const select = document.createElement("select");
  for (const value of ["all", ...values]) select.append(new Option(value, value));
  select.addEventListener("change", () => {
    for (const row of body.rows) row.hidden = select.value !== "all" && row.cells[column].textContent !== select.value;
  });
  label.append(select);
  table.parentElement.before(label);
}
