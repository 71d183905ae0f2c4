"use strict";
// Draws the curves of a recording. record is its data; see recordhtml.go.

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

function bytes(n) {
  let unit = 0;
  while (n >= 1024 && unit + 1 < units.length) {
    n /= 1024;
    unit++;
  }
  return (n < 10 && n % 1 ? n.toFixed(1) : n.toFixed(0)) + " " + units[unit];
}

function time(s, digits = 1) {
  if (s < 60) return s.toFixed(s % 1 ? digits : 0) + "s";
  const two = n => String(Math.floor(n)).padStart(2, "0");
  return s < 3600 ? Math.floor(s / 60) + "m" + two(s % 60) + "s"
    : Math.floor(s / 3600) + "h" + two(s / 60 % 60) + "m" + two(s % 60) + "s";
}

function add(parent, tag, text) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  parent.appendChild(e);
  return e;
}

const element = id => document.getElementById(id);
const powers = Array.from({length: 50}, (_, i) => 2 ** i);
const listed = 500;
let charts = [], events = [], zooming = false;

// markers draws the caps as lines, and a triangle and a line for each event.
function markers(panel) {
  return u => {
    const c = u.ctx, {left, top, width, height} = u.bbox, dots = devicePixelRatio;
    c.save();
    c.beginPath();
    c.rect(left - 4 * dots, top - 8 * dots, width + 8 * dots, height + 16 * dots);
    c.clip();
    for (const cap of panel.caps || []) {
      const y = u.valToPos(cap.bytes, "y", true);
      c.strokeStyle = c.fillStyle = record.cap;
      c.setLineDash([6 * dots, 3 * dots]);
      c.beginPath();
      c.moveTo(left, y);
      c.lineTo(left + width, y);
      c.stroke();
      c.setLineDash([]);
      c.font = 11 * dots + "px sans-serif";
      c.textAlign = "right";
      c.textBaseline = "bottom";
      c.fillText(cap.name, left + width - 4 * dots, y - 2 * dots);
    }
    for (const e of events) {
      const kind = record.kinds[e.kind], x = u.valToPos(e.t / 1000, "x", true);
      const y = kind.moved ? top + height : top, d = (kind.moved ? -4 : 4) * dots;
      c.strokeStyle = c.fillStyle = kind.colour;
      if (kind.line) {
        c.globalAlpha = 0.35;
        c.beginPath();
        c.moveTo(x, top);
        c.lineTo(x, top + height);
        c.stroke();
        c.globalAlpha = 1;
      }
      c.beginPath();
      c.moveTo(x - d, y - d);
      c.lineTo(x + d, y - d);
      c.lineTo(x, y + d);
      c.fill();
    }
    c.restore();
  };
}

// near shows the events beside the cursor.
function near(u) {
  if (u.cursor.left < 0) return;
  const within = e => Math.abs(u.valToPos(e.t / 1000, "x") - u.cursor.left) < 6;
  const list = events.filter(within);
  element("near").textContent = list.slice(0, 4).map(e => time(e.t / 1000) + " " + e.text)
    .join("; ") + (list.length > 4 ? "; " + (list.length - 4) + " more" : "");
}

// zoom gives all charts the times of one.
function zoom(u, scale) {
  if (scale !== "x" || zooming) return;
  zooming = true;
  for (const other of charts) if (other !== u) other.setScale("x", u.scales.x);
  zooming = false;
}

function options(panel) {
  const most = (panel.caps || []).reduce((m, c) => Math.max(m, c.bytes), 1);
  const bar = {stroke: "#202020", grid: {stroke: "#e2e2e2", width: 1}};
  return {
    title: panel.title, width: Math.max(500, document.body.clientWidth - 20), height: 220,
    cursor: {sync: {key: "record", setSeries: false, scales: ["x", null]}, y: false},
    scales: {x: {time: false}, y: {range: (u, min, max) => [0, Math.max(max, most) * 1.06]}},
    axes: [{...bar, values: (u, list, axis, space, step) =>
        list.map(s => time(s, step < 0.1 ? 3 : 1))},
      {...bar, size: 70, incrs: powers, values: (u, list) => list.map(bytes)}],
    series: [{label: "time", value: (u, v) => v == null ? "" : time(v, 3)},
      ...panel.curves.map(c => ({label: c.name, stroke: c.colour, width: 1.5,
        points: {show: false}, paths: uPlot.paths.stepped({align: 1}),
        value: (u, v) => v == null ? "" : bytes(v)}))],
    hooks: {draw: [markers(panel)], setCursor: [near], setScale: [zoom]},
  };
}

// show draws a view: all processes, or one.
function show(view) {
  for (const c of charts) c.destroy();
  charts = [];
  events = record.events.filter(e => !view.id || e.id === view.id);
  for (const panel of view.panels) {
    if (!panel.curves) continue;
    const place = add(element("charts"), "div");
    place.className = "chart";
    charts.push(new uPlot(options(panel), panel.rows, place));
  }
  const table = element("events");
  table.replaceChildren();
  for (const e of events.slice(0, listed)) {
    const row = add(table, "tr");
    add(row, "td", time(e.t / 1000));
    add(row, "td", e.text).style.color = record.kinds[e.kind].colour;
  }
  if (events.length > listed) add(table, "caption", "the first " + listed + " of " + events.length);
}

record.events = record.events || [];
for (const [kind, {text, colour}] of Object.entries(record.kinds)) {
  if (!record.events.some(e => e.kind === kind)) continue;
  const key = add(element("keys"), "span");
  add(key, "i").style.borderTopColor = colour;
  key.append(text);
}
record.views.forEach((v, i) => add(element("view"), "option", v.name).value = i);
element("view").onchange = e => {
  element("charts").replaceChildren();
  show(record.views[e.target.value]);
};
addEventListener("resize", () => charts.forEach(c => c.setSize({height: 220,
  width: Math.max(500, document.body.clientWidth - 20)})));
show(record.views[0]);
