"use strict";
// Sorts, filters and pages the tables. The page is complete without it.
const PAGE = 50;
const collator = new Intl.Collator(undefined, { numeric: true });
const make = (name, text, parent) => {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  if (parent) parent.append(element);
  return element;
};
const key = (row, i) => {
  const cell = row.cells[i], number = cell.dataset.sort;
  if (number !== undefined) return parseFloat(number);
  const text = cell.textContent.trim();
  return text === "" || text === "–" ? null : text;
};
const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : collator.compare(String(a), String(b)));
const choice = (title, options, parent, change) => {
  const label = make("label", title + ":", parent);
  label.className = "filter";
  const select = make("select", undefined, label);
  for (const [text, value] of options) select.append(new Option(text, value));
  select.addEventListener("change", change);
  return select;
};

for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells], region = table.parentElement;
  let rows = [...body.rows], kept = rows, first = 0;
  const tests = [], controls = make("div");
  controls.className = "controls";

  const pager = make("div");
  pager.className = "pager";
  const said = make("p");
  said.setAttribute("role", "status");
  const draw = (all = false) => {
    const last = all ? kept.length : Math.min(first + PAGE, kept.length);
    body.replaceChildren(...kept.slice(all ? 0 : first, last));
    const of = kept.length === rows.length ? `${rows.length} rows` : `${kept.length} rows that match, of ${rows.length}`;
    said.textContent = kept.length > PAGE ? `${first + 1} to ${last} of ${of}` : of;
    back.disabled = first === 0;
    on.disabled = last >= kept.length;
  };
  const turn = (step) => { first = Math.max(0, Math.min(first + step, kept.length - 1)); draw(); region.scrollTop = 0; };
  const back = make("button", "‹ Previous", pager), on = make("button", "Next ›", pager);
  back.type = on.type = "button";
  back.addEventListener("click", () => turn(-PAGE));
  on.addEventListener("click", () => turn(PAGE));
  const filter = () => { kept = rows.filter((row) => tests.every((test) => test(row))); first = 0; draw(); };

  heads.forEach((head, i) => {
    const button = make("button", head.textContent);
    button.type = "button";
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const keyed = rows.map((row) => [key(row, i), row]);
      const known = keyed.filter((one) => one[0] !== null).sort((a, b) => (down ? compare(b[0], a[0]) : compare(a[0], b[0])));
      rows = [...known, ...keyed.filter((one) => one[0] === null)].map((one) => one[1]); // what is missing stands last
      filter();
    });
  });

  for (const head of heads.filter((one) => one.dataset.filter !== undefined)) {
    const i = head.cellIndex, values = new Map();
    for (const row of rows) values.set(row.cells[i].textContent, key(row, i));
    if (values.size < 2) continue;
    const texts = [...values.keys()].sort((a, b) => compare(values.get(a), values.get(b)));
    const select = choice(head.dataset.filter, [["all", ""], ...texts.map((text) => [text, "=" + text])], controls, filter);
    tests.push((row) => select.value === "" || "=" + row.cells[i].textContent === select.value);
  }
  const judged = heads.filter((one) => one.dataset.judged !== undefined);
  if (judged.length) {
    const levels = judged.map((head) => [head.dataset.judged, String(head.cellIndex)]);
    const level = choice("level", [["any level", ""], ...levels], controls, filter);
    const words = ["agrees", "differs", "inconclusive"];
    const outcome = choice("outcome", [["all", ""], ...words.map((one) => [one, one]), ["no verdict", "none"]], controls, filter);
    tests.push((row) => {
      if (outcome.value === "") return true;
      const at = level.value === "" ? judged.map((head) => head.cellIndex) : [Number(level.value)];
      return at.some((i) => row.cells[i].classList.contains(outcome.value));
    });
  }
  if (tests.length) {
    const reset = make("button", "Show all", controls);
    reset.type = "button";
    reset.addEventListener("click", () => { for (const one of controls.querySelectorAll("select")) one.value = ""; filter(); });
    region.before(controls);
  }
  if (tests.length > 1 || rows.length > PAGE) {
    pager.insertBefore(said, on);
    if (rows.length <= PAGE) back.hidden = on.hidden = true;
    region.before(pager);
  }
  if (rows.length > PAGE) draw();
  addEventListener("beforeprint", () => { if (kept.length > PAGE) draw(true); });
  addEventListener("afterprint", () => { if (kept.length > PAGE) draw(); });
}
