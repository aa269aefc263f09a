(() => {
"use strict";
const root = document.documentElement;
const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));

/* A chart that silently is not there looks like a machine that was not measured: say what went wrong. */
function tell(error) {
  const notice = document.getElementById("script-error");
  notice.textContent = "Part of this page could not be drawn: " + (error && error.message || error);
  notice.hidden = false;
}
window.addEventListener("error", event => tell(event.error || event.message));

/* Filters */
function press(buttons, chosen) {
  for (const button of buttons) button.setAttribute("aria-pressed", String(button === chosen));
}
for (const filter of all(".checks > .filter")) {
  filter.hidden = false;
  const rows = all(".check-table > tbody > tr", filter.parentElement);
  const buttons = all("button", filter);
  for (const button of buttons) button.addEventListener("click", () => {
    press(buttons, button);
    const kind = button.dataset.kind;
    for (const row of rows) row.hidden = kind !== "all" && !row.classList.contains("k-" + kind);
  });
}
const nodeFilter = document.getElementById("node-filter");
if (nodeFilter) {
  nodeFilter.hidden = false;
  const search = document.getElementById("node-search");
  const buttons = all("button", nodeFilter);
  let show = "all";
  const apply = () => {
    const wanted = search.value.trim().toLowerCase();
    for (const item of all(".rack > li")) {
      const gone = (show === "attention" && item.dataset.standing === "certified")
        || !item.textContent.toLowerCase().includes(wanted);
      item.hidden = gone;
      document.querySelector(`.node[data-node="${item.dataset.node}"]`).hidden = gone;
    }
  };
  for (const button of buttons) button.addEventListener("click", () => {
    press(buttons, button);
    show = button.dataset.show;
    apply();
  });
  search.addEventListener("input", apply);
}

/* A link to a node opens its section. */
function reveal() {
  const node = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (node && node.matches("details.node")) {
    node.open = true;
    node.scrollIntoView();
  }
}
window.addEventListener("hashchange", reveal);
for (const link of all('a[href^="#node-"]')) link.addEventListener("click", () => {
  const node = document.getElementById(link.getAttribute("href").slice(1));
  if (node) node.open = true;
});

/* Charts */
const data = JSON.parse(document.getElementById("chart-data").textContent);
const drawn = new Map();
const PAPER_WIDTH = 284; // three in a row on A4 or Letter, landscape
const colour = name => getComputedStyle(root).getPropertyValue("--" + name).trim();

function unpack(packed, scale) {
  let last = 0;
  return packed.map(step => step === null ? null : (last += step) / scale);
}

/* One row of times for all series. Gaps that come from joining differ from samples that failed. */
function table(node, chart) {
  const times = node.times.map(packed => unpack(packed, 1000));
  const series = chart.series.map(packed => unpack(packed, chart.scale));
  if (times.length === 1) return [times[0], ...series];
  return uPlot.join(series.map((column, index) => [times[index], column]), series.map(() => [0, 2]));
}

/* Ordinary GPUs first and in one colour, so that the ones to look at lie on top. */
function order(node, chart) {
  const bad = index => node.states[index] === "fail" || node.states[index] === "absent";
  const noted = index => chart.odd.includes(index) || bad(index);
  const indexes = node.gpus.map((_, index) => index);
  return { indexes: [...indexes.filter(i => !noted(i)), ...indexes.filter(noted)], noted };
}

function oddColour(node, index) {
  return colour("odd-" + (noted(node).indexOf(index) % 4 + 1));
}
function noted(node) {
  const found = new Set();
  node.states.forEach((state, index) => { if (state === "fail" || state === "absent") found.add(index); });
  for (const chart of Object.values(node.charts)) chart.odd.forEach(index => found.add(index));
  return Array.from(found).sort((a, b) => a - b);
}

/* The sample of a series that is nearest to a row, which after joining may be another GPU's. */
function nearest(column, at) {
  for (let step = 0; step < column.length; step++) {
    if (column[at - step] !== undefined) return at - step;
    if (column[at + step] !== undefined) return at + step;
  }
  return at;
}

const fixed = value => Math.abs(value) >= 100 ? value.toFixed(0) : String(Math.round(value * 10) / 10);

function readout(plot, node, chart, indexes, output) {
  const at = plot.cursor.idx;
  if (at === null || at === undefined) { output.textContent = ""; return; }
  const named = [], others = [];
  indexes.forEach((gpu, position) => {
    const column = plot.data[position + 1], value = column[nearest(column, at)];
    if (value === null || value === undefined) return;
    (gpu === node.pinned || (node.pinned === undefined && order(node, chart).noted(gpu)) ? named : others).push([gpu, value]);
  });
  const parts = [plot.data[0][at].toFixed(1) + " s"];
  for (const [gpu, value] of named.slice(0, 3)) parts.push(node.gpus[gpu] + " " + fixed(value));
  if (others.length) {
    const values = others.map(pair => pair[1]), low = Math.min(...values), high = Math.max(...values);
    parts.push((named.length ? "others " : "") + (low === high ? fixed(low) : fixed(low) + "–" + fixed(high)));
  }
  output.textContent = parts.join(" · ");
}

function bands(plot, node) {
  const ctx = plot.ctx, box = plot.bbox, ratio = devicePixelRatio || 1;
  ctx.save();
  ctx.beginPath();
  ctx.rect(box.left, 0, box.width, box.top + box.height);
  ctx.clip();
  ctx.font = `${10.5 * ratio}px system-ui, sans-serif`;
  ctx.textBaseline = "bottom";
  const picked = node.shown === undefined ? undefined : node.own_phases[node.shown];
  let free = 0; // where the last name ended
  (picked || node.phases).forEach(([name, start, end], index) => {
    const left = plot.valToPos(start, "x", true), right = plot.valToPos(end, "x", true);
    if (index % 2 === 0) {
      ctx.fillStyle = colour("band");
      ctx.fillRect(left, box.top, right - left, box.height);
    }
    ctx.fillStyle = colour("quiet");
    const seen = Math.max(left, box.left), room = Math.min(right, box.left + box.width) - seen;
    const width = ctx.measureText(name).width + 6 * ratio;
    if (width > room || seen < free) return;
    ctx.fillText(name, seen + 3 * ratio, box.top - 2 * ratio);
    free = seen + width;
  });
  ctx.restore();
}

function limits(plot, chart) {
  const ctx = plot.ctx, box = plot.bbox, ratio = devicePixelRatio || 1;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colour("limit");
  ctx.lineWidth = ratio;
  ctx.setLineDash([5 * ratio, 4 * ratio]);
  ctx.font = `${10.5 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = "right";
  for (const [value, label] of chart.lines) {
    const y = plot.valToPos(value, "y", true);
    if (y < box.top || y > box.top + box.height) continue;
    ctx.beginPath();
    ctx.moveTo(box.left, y);
    ctx.lineTo(box.left + box.width, y);
    ctx.stroke();
    ctx.fillText(label, box.left + box.width - 4 * ratio, y - 3 * ratio);
  }
  ctx.restore();
}

/* Where both neighbours failed a line cannot show the sample: draw a point. Joining leaves undefined, which is no sample. */
function lonely(plot, index) {
  const samples = [];
  plot.data[index].forEach((value, at) => { if (value !== undefined) samples.push([value, at]); });
  const gone = position => !samples[position] || samples[position][0] === null;
  return samples.filter((sample, position) => !gone(position) && gone(position - 1) && gone(position + 1))
    .map(sample => sample[1]);
}

function draw(figure, key) {
  const node = data[key], chart = node.charts[figure.dataset.chart];
  const host = figure.querySelector(".plot"), output = figure.querySelector("output");
  const { indexes, noted: isNoted } = order(node, chart);
  const columns = table(node, chart);
  const rows = [columns[0], ...indexes.map(index => columns[index + 1])];
  const axis = { stroke: colour("quiet"), grid: { stroke: colour("grid"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
  const lines = chart.lines.map(line => line[0]);
  const plot = new uPlot({
    width: root.classList.contains("printing") ? PAPER_WIDTH : Math.max(200, host.clientWidth),
    height: host.clientHeight,
    padding: [16, 8, 0, 0],
    legend: { show: false },
    focus: { alpha: 0.18 },
    cursor: {
      sync: { key: "node" + key },
      focus: { prox: -1 },
      drag: { x: true, y: false },
      points: { size: 6 },
      dataIdx: (plot, series, at) => series ? nearest(plot.data[series], at) : at,
    },
    scales: {
      x: { time: false },
      y: { range: (_, low, high) => {
        const top = Math.max(high, ...lines), bottom = chart.unit === "°C" ? Math.min(low, 30) : Math.min(0, low);
        return [bottom, top + (top - bottom || 1) * (lines.length ? 0.14 : 0.08)];
      } },
    },
    axes: [
      { ...axis, size: 24, gap: 3, values: (_, ticks) => ticks.map(tick => tick + " s") },
      { ...axis, size: 44, gap: 3, space: 26 },
    ],
    series: [{}, ...indexes.map(index => ({
      label: node.gpus[index],
      stroke: isNoted(index) ? oddColour(node, index) : colour("series"),
      width: chart.odd.includes(index) ? 2 : isNoted(index) ? 1.4 : 1,
      paths: chart.step ? uPlot.paths.stepped({ align: 1 }) : undefined,
      points: { show: true, size: 3, filter: lonely },
    }))],
    hooks: {
      drawClear: [plot => bands(plot, node)],
      draw: [plot => limits(plot, chart)],
      setCursor: [plot => readout(plot, node, chart, indexes, output)],
    },
  }, rows, host);
  drawn.set(figure, { plot, key, indexes });
}

function highlight(key, gpu) {
  data[key].shown = gpu;
  for (const item of drawn.values()) {
    if (item.key !== key) continue;
    const position = gpu === undefined ? null : item.indexes.indexOf(gpu) + 1;
    item.plot.setSeries(position, { focus: true });
    if (data[key].own_phases.length) item.plot.redraw(false);
  }
}

function legend(group, key) {
  const node = data[key], box = group.querySelector(".legend"), special = noted(node);
  box.textContent = "";
  node.gpus.forEach((name, gpu) => {
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", String(node.pinned === gpu));
    const line = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [attribute, value] of [["width", "14"], ["height", "4"], ["rx", "2"],
      ["fill", special.includes(gpu) ? oddColour(node, gpu) : colour("series")]]) rect.setAttribute(attribute, value);
    line.append(rect);
    button.append(line, name);
    for (const enter of ["mouseenter", "focus"]) button.addEventListener(enter, () => highlight(key, gpu));
    for (const leave of ["mouseleave", "blur"]) button.addEventListener(leave, () => highlight(key, node.pinned));
    button.addEventListener("click", () => {
      node.pinned = node.pinned === gpu ? undefined : gpu;
      all("button", box).forEach((other, index) => other.setAttribute("aria-pressed", String(node.pinned === index)));
      highlight(key, node.pinned === undefined ? gpu : node.pinned);
    });
    box.append(button);
  });
  box.hidden = false;
}

function ensure(group) {
  const key = group.dataset.node;
  const waiting = all("figure", group).filter(figure => !drawn.has(figure));
  if (!waiting.length || !group.clientWidth) return;
  try {
    legend(group, key);
    for (const figure of waiting) draw(figure, key);
  } catch (error) {
    tell(error);
    throw error;
  }
}

function redraw() {
  for (const [figure, { plot }] of Array.from(drawn)) {
    plot.destroy();
    drawn.delete(figure);
  }
  all(".charts").forEach(group => { if (group.closest("details.node").open) ensure(group); });
}

/* Only charts near the view are drawn: a rack of 100 nodes has 4000 lines. */
const watcher = new IntersectionObserver(entries => {
  for (const entry of entries) if (entry.isIntersecting) ensure(entry.target);
}, { rootMargin: "600px" });
const sizes = new ResizeObserver(entries => {
  for (const entry of entries) for (const figure of all("figure", entry.target)) {
    const item = drawn.get(figure), host = figure.querySelector(".plot");
    if (item && host.clientWidth && Math.abs(item.plot.width - host.clientWidth) > 1) {
      item.plot.setSize({ width: host.clientWidth, height: host.clientHeight });
    }
  }
});
for (const group of all(".charts")) {
  watcher.observe(group);
  sizes.observe(group);
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

/* Paper: sections opened (not every subject of every passed check), light colours; undone afterwards. */
let opened = [];
window.addEventListener("beforeprint", () => {
  opened = all("details").filter(details => !details.open && !details.closest(".reason"));
  opened.forEach(details => { details.open = true; });
  root.classList.add("printing");
  redraw();
});
window.addEventListener("afterprint", () => {
  opened.forEach(details => { details.open = false; });
  root.classList.remove("printing");
  redraw();
});
reveal();
})();
