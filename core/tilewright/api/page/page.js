"use strict";
// Draws the page from its embedded data. Texts are set as text nodes, so that no name becomes markup.
const data = JSON.parse(document.getElementById("data").textContent);
const body = document.getElementById("page");
const COLOURS = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb", "#994f00", "#004488", "#117733"];

function element(parent, name, attributes = {}, text = null) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  parent.append(made);
  return made;
}
function drawn(parent, name, attributes = {}, text = null) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  parent.append(made);
  return made;
}
function picture(parent, id, width, height) {
  const holder = element(parent, "div", { class: "scroll" });
  return drawn(holder, "svg", { id, viewBox: `0 0 ${width} ${height}`, width, height, role: "img" });
}
function section(title, note = null) {
  const made = element(body, "section");
  element(made, "h2", {}, title);
  if (note) element(made, "p", {}, note);
  return made;
}
function figure(value) {
  if (value === null || value === undefined) return "-";
  if (typeof value === "string") return value;
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e7 || size < 1e-3)) return value.toExponential(3);
  return value.toLocaleString("en", { maximumSignificantDigits: Number.isInteger(value) ? 12 : 5 });
}
function table(parent, head, rows, id = null) {
  const made = element(element(parent, "div", { class: "scroll" }), "table", id ? { id } : {});
  const top = element(made, "tr");
  head.forEach((each, at) => element(top, "th", at && typeof rows[0]?.[at] === "string" ? { class: "words" } : {}, each));
  for (const row of rows) {
    const line = element(made, "tr");
    row.forEach((each, at) => element(line, "td", at && typeof each === "string" ? { class: "words" } : {}, figure(each)));
  }
  return made;
}

// Scale with one position per word or value of a choice. With many values, only some are labelled.
function steps(names, from, to) {
  const step = (to - from) / Math.max(1, names.length - 1), named = Math.ceil(names.length / 12);
  const place = (value) => (names.length > 1 ? from + step * names.indexOf(value) : (from + to) / 2);
  return { place, ticks: names.filter((_, at) => at % named === 0).map((name) => [place(name), figure(name)]) };
}
// Scale of numbers or words between two positions of the figure.
function scale(values, from, to, logarithmic, chosen = false) {
  const known = values.filter((each) => each !== null);
  const words = known.some((each) => typeof each === "string");
  if (words || chosen) return steps([...new Set(known)].sort(words ? () => 0 : (a, b) => a - b), from, to);
  let low = Math.min(...known), high = Math.max(...known);
  const log = logarithmic && low > 0 && high / low > 3;
  const bend = log ? Math.log10 : (value) => value;
  const back = log ? (value) => 10 ** value : (value) => value;
  const [least, most] = [bend(low), bend(high)];
  const place = (value) => (most > least ? from + ((bend(value) - least) / (most - least)) * (to - from) : (from + to) / 2);
  const count = most > least ? 4 : 0;
  const ticks = [...Array(count + 1).keys()].map((at) => {
    const value = back(least + ((most - least) * at) / Math.max(1, count));
    return [place(value), figure(Number(value.toPrecision(3)))];
  });
  return { place, ticks };
}
function chart(svg, xs, ys, names, box, logs = [true, true]) {
  const [left, top, right, bottom] = box;
  const x = scale(xs, left, right, logs[0]), y = scale(ys, bottom, top, logs[1]);
  drawn(svg, "path", { d: `M${left},${top}V${bottom}H${right}`, fill: "none", class: "axis" });
  for (const [at, text] of x.ticks) drawn(svg, "text", { x: at, y: bottom + 15, "text-anchor": at < right ? "middle" : "end" }, text);
  for (const [at, text] of y.ticks) drawn(svg, "text", { x: left - 5, y: at + 4, "text-anchor": "end" }, text);
  drawn(svg, "text", { x: (left + right) / 2, y: bottom + 32, "text-anchor": "middle" }, names[0]);
  drawn(svg, "text", { x: left, y: top - 8 }, names[1]);
  return [x.place, y.place];
}
// Approximate width of the longest label next to a figure.
function besides(names) {
  return Math.max(150, ...names.map((name) => 6.4 * name.length));
}
function heat(parent, id, rows, columns, value, shown) {
  const side = 10 + besides(rows);
  const svg = picture(parent, id, side + 100 * columns.length, 34 + 18 * rows.length);
  let most = 0;
  rows.forEach((_, i) => columns.forEach((_, j) => { most = Math.max(most, value(i, j) || 0); }));
  columns.forEach((name, j) => drawn(svg, "text", { x: side + 100 * j + 48, y: 20, "text-anchor": "middle" }, name));
  rows.forEach((name, i) => {
    drawn(svg, "text", { x: side - 6, y: 43 + 18 * i, "text-anchor": "end" }, name);
    columns.forEach((column, j) => {
      const share = most ? (value(i, j) || 0) / most : 0;
      const cell = drawn(svg, "rect", { class: "cell", x: side + 100 * j, y: 30 + 18 * i, width: 98, height: 16, fill: `rgb(${255 - 40 * share},${250 - 190 * share},${240 - 200 * share})` });
      drawn(cell, "title", {}, `${name}, ${column}: ${shown(value(i, j))}`);
      drawn(svg, "text", { x: side + 100 * j + 48, y: 42 + 18 * i, "text-anchor": "middle", "pointer-events": "none", ...(share > 0.6 ? { class: "light" } : {}) }, shown(value(i, j)));
    });
  });
}
function provenance() {
  const made = section("Provenance");
  table(made, ["what", ""], data.provenance.map(([name, value]) => [name, String(value)]), "provenance");
}

function exploration() {
  const choices = data.choices.length;
  const axes = [...data.choices, "energy, pJ", "cycles", "EDP, pJ x cycles", ...(data.has_area ? ["area, mm2"] : [])];
  const points = data.points; // [index, on the front, ...values of the axes]
  const named = (point) => `point ${point[0]}: ${data.choices.map((name, at) => `${name} ${figure(point[2 + at])}`).join(", ")}`;
  const figures = (point) => axes.slice(choices).map((name, at) => `${name} ${figure(point[2 + choices + at])}`).join("; ");

  const front = section("Front of energy, cycles and area", "Red points are on the front: nothing else is at least as good in all and better in one. Point at one to see its name.");
  const pick = element(front, "p");
  const told = element(front, "p", { class: "told", id: "told" }, "");
  const svg = picture(front, "front", 900, 420);
  const dots = new Map();
  const shown = [choices + 1, choices];
  function scatter() {
    svg.replaceChildren();
    dots.clear();
    const [x, y] = chart(svg, points.map((each) => each[2 + shown[0]]), points.map((each) => each[2 + shown[1]]), [axes[shown[0]], axes[shown[1]]], [70, 24, 880, 376]);
    for (const point of [...points].sort((a, b) => a[1] - b[1])) {
      if (point[2 + shown[0]] === null || point[2 + shown[1]] === null) continue;
      const dot = drawn(svg, "circle", { class: point[1] ? "point front" : "point", cx: x(point[2 + shown[0]]).toFixed(1), cy: y(point[2 + shown[1]]).toFixed(1), r: point[1] ? 5 : 3.5 });
      drawn(dot, "title", {}, named(point));
      dot.addEventListener("pointerenter", () => { told.textContent = `${named(point)}. ${figures(point)}`; });
      dot.addEventListener("click", () => choose(point[0]));
      dots.set(point[0], dot);
    }
  }
  [0, 1].forEach((which) => {
    element(pick, "span", {}, which ? " against " : "");
    const list = element(pick, "select", { "aria-label": which ? "vertical" : "horizontal" });
    axes.forEach((name, at) => element(list, "option", { value: at, ...(at === shown[which] ? { selected: "" } : {}) }, name));
    list.addEventListener("change", () => { shown[which] = Number(list.value); scatter(); apply(); });
  });

  const parallel = section("All choices and figures", "Drag along an axis to keep a range; click it to let go.");
  const count = element(parallel, "p", { id: "selected" });
  const lines = new Map();
  const ranges = new Map();
  const wide = Math.max(900, 110 * axes.length), high = 330;
  const coordinates = picture(parallel, "parallel", wide, high);
  const scales = axes.map((_, at) => scale(points.map((each) => each[2 + at]), high - 24, 34, at >= choices, at < choices));
  const place = (at) => 60 + ((wide - 150) * at) / Math.max(1, axes.length - 1);
  for (const point of [...points].sort((a, b) => a[1] - b[1])) {
    const path = axes.map((_, at) => (point[2 + at] === null ? null : `${place(at).toFixed(0)},${scales[at].place(point[2 + at]).toFixed(1)}`)).filter((each) => each);
    const line = drawn(coordinates, "path", { class: point[1] ? "line front" : "line", d: `M${path.join("L")}` });
    drawn(line, "title", {}, named(point));
    lines.set(point[0], line);
  }
  axes.forEach((name, at) => {
    const x = place(at);
    drawn(coordinates, "path", { d: `M${x},34V${high - 24}`, class: "axis" });
    const half = 3.2 * name.length;
    drawn(coordinates, "text", { x: Math.max(half, Math.min(x, wide - half)), y: at % 2 ? 12 : 24, "text-anchor": "middle" }, name);
    for (const [y, text] of scales[at].ticks) drawn(coordinates, "text", { x: x + 4, y: y + 4 }, text);
    const mark = drawn(coordinates, "rect", { class: "range", x: x - 8, width: 16, y: 0, height: 0 });
    const grab = drawn(coordinates, "rect", { class: "grab", "data-axis": at, x: x - 14, width: 28, y: 28, height: high - 46 });
    const where = (event) => ((event.clientY - coordinates.getBoundingClientRect().top) * high) / coordinates.getBoundingClientRect().height;
    let began = null;
    function drag(event) {
      if (began === null) return;
      const [low, top] = [Math.min(began, where(event)), Math.max(began, where(event))];
      if (top - low < 3) ranges.delete(at); else ranges.set(at, [low, top]);
      mark.setAttribute("y", low);
      mark.setAttribute("height", ranges.has(at) ? top - low : 0);
      apply();
    }
    grab.addEventListener("pointerdown", (event) => { began = where(event); if (event.isTrusted) grab.setPointerCapture(event.pointerId); drag(event); });
    grab.addEventListener("pointermove", drag);
    grab.addEventListener("pointerup", (event) => { drag(event); began = null; });
  });
  function apply() {
    let left = 0;
    for (const point of points) {
      const keep = [...ranges].every(([at, [low, top]]) => {
        if (point[2 + at] === null) return false;
        const y = scales[at].place(point[2 + at]);
        return low <= y && y <= top;
      });
      left += keep;
      lines.get(point[0]).classList.toggle("off", !keep);
      if (dots.has(point[0])) dots.get(point[0]).classList.toggle("off", !keep);
    }
    count.textContent = `${left.toLocaleString("en")} of ${points.length.toLocaleString("en")} points selected`;
  }

  const where = section("Energy by layer and memory", "Of one execution of each layer, pJ; behind it what most cycles wait for. Points of the front, by the objective.");
  const list = element(where, "select", { id: "point", "aria-label": "point" });
  data.detailed.forEach((each) => element(list, "option", { value: each.point }, named(points.find((point) => point[0] === each.point))));
  const map = element(where, "div");
  function detail() {
    const chosen = data.detailed.find((each) => String(each.point) === list.value);
    map.replaceChildren();
    if (!chosen) return;
    heat(map, "heat", data.layers.map((each, at) => `${each[0]} x${each[1]}, ${chosen.binds[at] || "-"}`), data.places, (i, j) => chosen.energies[i][j], figure);
    for (const [index, dot] of dots) dot.classList.toggle("chosen", index === chosen.point);
  }
  function choose(index) {
    if (data.detailed.some((each) => each.point === index)) { list.value = String(index); detail(); }
  }
  list.addEventListener("change", detail);

  const beside = section("The best and the baseline", data.baseline ? `Least ${data.objective}, beside the first machine of the space that was searched.` : "Nothing was found.");
  if (data.baseline) {
    const [best, base] = [data.best, data.baseline].map((index) => points.find((each) => each[0] === index[0]));
    table(beside, ["", `best: point ${best[0]}`, `baseline: point ${base[0]}`, "baseline / best"],
      axes.map((name, at) => [name, best[2 + at], base[2 + at], at >= choices && best[2 + at] ? base[2 + at] / best[2 + at] : null]), "best");
  }
  const without = section("Points without figures", data.without.length ? null : "None.");
  if (data.without.length) table(without, ["why", "points", "such as"], data.without, "without");
  scatter();
  apply();
  detail();
}

function network() {
  const layers = data.layers.filter((each) => each.energy_pj !== null);
  const stack = section("Energy by layer and memory", "All executions of each layer.");
  const most = Math.max(...layers.map((each) => each.energy_pj * each.count));
  const names = layers.map((each) => `${each.name} x${each.count}`);
  const side = 10 + besides(names), wide = side + 730;
  let [last, row] = [side, 0];
  const legend = data.places.map((name) => {
    const width = 32 + 6.4 * name.length;
    if (last + width > wide && last > side) [last, row] = [side, row + 1];
    last += width;
    return [last - width, 16 * row];
  });
  const top = 30 + 16 * row;
  const svg = picture(stack, "stack", wide, top + 10 + 20 * layers.length);
  legend.forEach(([x, y], at) => {
    drawn(svg, "rect", { x, y: y + 4, width: 10, height: 10, fill: COLOURS[at % COLOURS.length] });
    drawn(svg, "text", { x: x + 14, y: y + 13 }, data.places[at]);
  });
  layers.forEach((layer, i) => {
    let x = side;
    drawn(svg, "text", { x: side - 6, y: top + 11 + 20 * i, "text-anchor": "end" }, names[i]);
    layer.energies.forEach((energy, at) => {
      const width = (640 * energy * layer.count) / most;
      const bar = drawn(svg, "rect", { class: "bar", x, y: top + 20 * i, width, height: 15, fill: COLOURS[at % COLOURS.length] });
      drawn(bar, "title", {}, `${layer.name}, ${data.places[at]}: ${figure(energy)} pJ each, ${figure((100 * energy) / layer.energy_pj)} %`);
      x += width;
    });
    drawn(svg, "text", { x: x + 5, y: top + 12 + 20 * i }, `${figure(layer.energy_pj * layer.count * 1e-6)} uJ`);
  });

  const roof = section("Roofline", "Operations per cycle over operations per word that passes the outermost memory's busiest port; lines are what units and that port allow.");
  const known = layers.filter((each) => each.intensity !== null);
  if (known.length) {
    const plot = picture(roof, "roofline", 900, 380);
    const units = data.units, rate = data.rate;
    const xs = known.map((each) => each.intensity).concat(rate ? [units / rate] : []);
    const wide = [Math.min(...xs) / 2, Math.max(...xs) * 2];
    const [x, y] = chart(plot, wide, [Math.min(...known.map((each) => each.speed)) / 2, units * 1.2], ["operations per word", "operations per cycle"], [70, 24, 880, 330]);
    const bound = (at) => Math.min(units, rate ? at * rate : units);
    const steps = [...Array(61).keys()].map((at) => wide[0] * (wide[1] / wide[0]) ** (at / 60));
    const low = Math.min(...known.map((each) => each.speed)) / 2;
    drawn(plot, "path", { class: "axis", fill: "none", d: "M" + steps.filter((at) => bound(at) >= low).map((at) => `${x(at).toFixed(1)},${y(bound(at)).toFixed(1)}`).join("L") });
    for (const layer of known) {
      const dot = drawn(plot, "circle", { class: "point front", cx: x(layer.intensity), cy: y(layer.speed), r: 5 });
      drawn(dot, "title", {}, `${layer.name}: ${figure(layer.speed)} operations per cycle, ${figure(layer.intensity)} per word`);
    }
  }

  const each = section("Layers");
  table(each, ["layer", "times", "operations", "energy, pJ", "cycles", "utilization", "bound by"],
    data.layers.map((layer) => [layer.name, layer.count, layer.macs, layer.energy_pj, layer.cycles, layer.utilization === null ? null : `${(100 * layer.utilization).toFixed(1)} %`, layer.binds || layer.error || "-"]), "layers");

  const nests = section("Loop nests");
  for (const layer of layers) {
    const fold = element(nests, "details", { class: "nest" });
    element(fold, "summary", {}, layer.name);
    element(fold, "pre", {}, layer.nest.join("\n"));
  }
}

element(body, "h1", {}, data.title);
for (const line of data.summary) element(body, "p", {}, line);
({ exploration, network })[data.kind]();
provenance();
document.documentElement.dataset.ready = "yes";
