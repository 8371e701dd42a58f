"use strict";
// Sorts and filters the tables, connects their rows with the marks of charts, and switches between dark and light.
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const cell = (row, at) => row.cells[at].textContent.trim();
const number = (text) => (/\d/.test(text) ? Number(text.replace(/[,%<]/g, "")) : NaN);
for (const table of all("table.data")) {
  const heads = all("thead th", table);
  heads.forEach((head, at) => head.firstChild.addEventListener("click", () => {
    const way = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    for (const each of heads) each.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
    const compare = (a, b) => {
      const [one, other] = [number(a), number(b)];
      if (Number.isNaN(one) || Number.isNaN(other)) return Number.isNaN(one) - Number.isNaN(other) || a.localeCompare(b);
      return one - other;
    };
    const rows = [...table.tBodies[0].rows].sort((a, b) => way * compare(cell(a, at), cell(b, at)));
    table.tBodies[0].append(...rows);
  }));
}
// A word must be in the row; NAME<VALUE, also with > = <= >=, compares the column whose header begins with NAME.
function accepts(word, row, heads) {
  const [, name, sign, value] = /^(.+?)([<>]=?|=)(.+)$/.exec(word) || [];
  const at = name ? heads.findIndex((head) => head.textContent.toLowerCase().startsWith(name)) : -1;
  if (at < 0) return row.textContent.toLowerCase().includes(word);
  const [mine, other] = [number(cell(row, at)), Number(value)];
  if (sign === "=") return Number.isNaN(other) ? cell(row, at).toLowerCase() === value : mine === other;
  return sign[0] === "<" ? mine < other || (sign[1] && mine === other) : mine > other || (sign[1] && mine === other);
}
const marks = new Map();
for (const group of all('[id*="-marks-"]')) all("use", group).forEach((mark, at) => {
  const row = document.querySelector(`[data-mark="${group.id.replace(/.*-/, "")}-${at}"]`);
  if (!row) return;
  marks.set(row, [...(marks.get(row) || []), mark]);
  const text = all("th", row.closest("table")).map((head, at) => `${head.textContent} ${cell(row, at)}`).join("; ");
  mark.append(Object.assign(document.createElementNS(mark.namespaceURI, "title"), { textContent: text }));
  mark.addEventListener("click", () => {
    for (const each of all(".chosen")) each.classList.remove("chosen");
    for (const each of [row, ...marks.get(row)]) each.classList.add("chosen");
    row.scrollIntoView({ block: "nearest" });
  });
});
for (const input of all(".filter input")) input.addEventListener("input", () => {
  const table = document.getElementById(input.dataset.table), heads = all("thead th", table);
  const words = input.value.toLowerCase().split(/\s+/).filter((word) => word);
  let shown = 0;
  for (const row of table.tBodies[0].rows) {
    row.hidden = !words.every((word) => accepts(word, row, heads));
    shown += !row.hidden;
    for (const mark of marks.get(row) || []) mark.classList.toggle("off", row.hidden);
  }
  input.closest(".filter").querySelector("output").textContent = `${shown.toLocaleString("en")} of ${table.tBodies[0].rows.length.toLocaleString("en")} rows`;
});
const theme = document.getElementById("theme"), root = document.documentElement;
const name = () => { theme.textContent = root.dataset.theme === "dark" ? "Light" : "Dark"; };
root.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
theme.addEventListener("click", () => { root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark"; name(); });
theme.hidden = false;
name();
const open = () => {
  const found = document.getElementById(location.hash.slice(1));
  if (!found || !("open" in found)) return;
  found.open = true;
  found.firstChild.focus();
};
addEventListener("hashchange", open);
open();
root.dataset.ready = "yes";
