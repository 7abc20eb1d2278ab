"use strict";
// Small charts as SVG, in the colours of the page.
const charts = (() => {
  const { element, shape } = ui;
  const MARGIN = { left: 62, right: 16, top: 12, bottom: 24 };
  const LETTER = 6.6; // width of a letter, roughly

  const clipped = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

  function ticks(low, high, most = 6) {
    const least = (high - low) / most;
    const power = 10 ** Math.floor(Math.log10(least));
    const step = power * [1, 2, 5, 10].find(size => power * size >= least * 0.999);
    const found = [];
    for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9; n++)
      found.push(Number((n * step).toPrecision(12)));
    return found;
  }

  // Powers of ten, with 2 and 5 in between where there are few.
  function powers(low, high) {
    const factors = high / low < 1000 ? [1, 2, 5] : [1];
    const found = [];
    for (let n = Math.floor(Math.log10(low)); n <= Math.log10(high); n++)
      found.push(...factors.map(factor => factor * 10 ** n));
    return found.filter(tick => tick >= low && tick <= high);
  }

  const short = value => String(Number(value.toPrecision(6))).replace("-", "−");

  // An empty chart with axes, as wide as the page at most; x and y are {low, high, label, log, flip}.
  function frame(label, x, y, height) {
    const width = Math.max(300, Math.min(560, document.querySelector("main").clientWidth));
    const [left, right] = [MARGIN.left, width - MARGIN.right];
    const [top, bottom] = [MARGIN.top, height - MARGIN.bottom];
    const along = ({ low, high, log }, from, to) => {
      const of = log ? Math.log10 : value => value;
      return value => Number((from + ((of(value) - of(low)) / (of(high) - of(low))) * (to - from)).toFixed(1));
    };
    const [atX, atY] = [along(x, left, right), y.flip ? along(y, top, bottom) : along(y, bottom, top)];
    const chart = shape("svg", {
      viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": label,
    });
    for (const tick of x.log ? powers(x.low, x.high) : ticks(x.low, x.high))
      chart.append(
        shape("line", { class: "grid", x1: atX(tick), x2: atX(tick), y1: top, y2: bottom }),
        shape("text", { class: "tick", x: atX(tick), y: bottom + 16, "text-anchor": "middle" }, short(tick)),
      );
    for (const tick of ticks(y.low, y.high))
      chart.append(
        shape("line", { class: "grid", x1: left, x2: right, y1: atY(tick), y2: atY(tick) }),
        shape("text", { class: "tick", x: left - 7, y: atY(tick) + 4, "text-anchor": "end" }, short(tick)),
      );
    chart.append(shape("text", {
      class: "label", "text-anchor": "middle", transform: `translate(13 ${(top + bottom) / 2}) rotate(-90)`,
    }, clipped(y.label, Math.floor((bottom - top) / LETTER))));
    const whole = element("div", {}, chart, element("p", { class: "axis" }, x.label));
    return { whole, chart, atX, atY, left, right, top, bottom };
  }

  function extent(values) {
    let [low, high] = [Infinity, -Infinity];
    for (const value of values) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
    return [low, high];
  }

  // The extent of values with a margin on each side.
  function range(values, share) {
    const [low, high] = extent(values);
    const margin = (high - low) * share || Math.abs(high) * share || 1;
    return [low - margin, high + margin];
  }

  // How many users have which value, and a marked one.
  function histogram({ ends: [low, high], counts, mark }, label) {
    const y = { low: 0, high: Math.max(...counts) * 1.05, label: "users" };
    const { whole, chart, atX, atY, top, bottom } = frame(label, { low, high, label }, y, 232);
    const edge = n => atX(low + ((high - low) * n) / counts.length);
    for (const [n, count] of counts.entries()) {
      const [x, width] = [edge(n), Math.max(0.5, edge(n + 1) - edge(n) - 1)];
      chart.append(shape("rect", { class: "bar", x, y: atY(count), width, height: bottom - atY(count) }));
    }
    chart.append(shape("line", { class: "mark", x1: atX(mark), x2: atX(mark), y1: top, y2: bottom }));
    return whole;
  }

  // One dot for each user, with the line of equal scores.
  function scatter(xs, ys, xLabel, yLabel) {
    const [low, high] = range([...extent(xs), ...extent(ys)], 0.03);
    const [x, y] = [{ low, high, label: xLabel }, { low, high, label: yLabel }];
    const { whole, chart, atX, atY } = frame(`${yLabel} against ${xLabel}`, x, y, 462);
    let dots = "";
    for (let n = 0; n < xs.length; n++) dots += `M${atX(xs[n])} ${atY(ys[n])}h0`;
    chart.append(
      shape("line", { class: "mark", x1: atX(low), y1: atY(low), x2: atX(high), y2: atY(high) }),
      shape("path", { class: `dots${xs.length > 2000 ? " many" : xs.length < 200 ? " few" : ""}`, d: dots }),
    );
    return whole;
  }

  // Accuracy against cost: points are {name, x, y, href, eligible}. The line joins the
  // eligible models that no other one beats in both.
  function pareto(points, xLabel, metric) {
    const sign = metric.better === "higher" ? -1 : 1;
    const positive = points.filter(point => point.x > 0).map(point => point.x);
    const least = positive.length ? Math.min(...positive) / 3 : 0.1;
    const most = positive.length ? Math.max(...positive) * 2 : 10;
    const at = point => (point.x > 0 ? point.x : least);
    const limit = worstShown(points.map(point => point.y), sign);
    const inside = value => sign * Math.min(sign * value, sign * limit);
    const [low, high] = range(points.map(point => inside(point.y)), 0.08);
    const xAxis = { low: least, high: most, log: true, label: xLabel };
    const yAxis = { low, high, label: metric.name, flip: sign > 0 };
    const { whole, chart, atX, atY, left, right, top, bottom } = frame(`${metric.name} against ${xLabel}`, xAxis, yAxis, 342);
    chart.setAttribute("role", "group");
    const frontier = [];
    for (const point of [...points].sort((a, b) => a.x - b.x || sign * (a.y - b.y)))
      if (point.eligible && inside(point.y) === point.y && (!frontier.length || sign * (point.y - frontier.at(-1).y) < 0)) frontier.push(point);
    const line = frontier.map((point, n) =>
      n ? `H${atX(at(point))}V${atY(point.y)}` : `M${atX(at(point))} ${atY(point.y)}`,
    );
    if (line.length) chart.append(shape("path", { class: "frontier", d: `${line.join("")}H${right}` }));
    const taken = points.map(point => box(atX(at(point)) - 5, atY(inside(point.y)) + 5, 10, 10));
    const isNamed = point => points.length <= 12 || frontier.includes(point) || !point.eligible || inside(point.y) !== point.y;
    // those on the line are named first
    for (const point of [...points].sort((a, b) => frontier.includes(b) - frontier.includes(a) || a.x - b.x)) {
      const [x, y] = [atX(at(point)), atY(inside(point.y))];
      const isFirst = frontier.includes(point);
      const isBeyond = inside(point.y) !== point.y;
      const said = `${point.name}: ${ui.number(point.y)}, ${ui.seconds(point.x)}`;
      const name = clipped(point.name, 24) + (isBeyond ? ` (${ui.number(point.y, 2)})` : "");
      chart.append(
        shape("a", { href: point.href, class: `point${isFirst ? " first" : ""}${point.eligible ? "" : " bound"}`, "aria-label": said },
          shape("title", {}, said),
          isBeyond
            ? shape("path", { class: "beyond", d: `M${x - 5} ${y - 4}h10l-5 9z` })
            : shape("circle", { cx: x, cy: y, r: isFirst ? 5 : 4 }),
          isNamed(point) ? label(name, x, y, taken, { left, right, top, bottom }) : "",
        ),
      );
    }
    return whole;
  }

  // The worst value that is drawn in its place: a few hopeless models must not flatten the others.
  function worstShown(values, sign) {
    const sorted = Float64Array.from(values, value => sign * value).sort();
    const median = (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
    const gap = median - sorted[0];
    const limit = median + 4 * gap;
    const inside = sorted.filter(value => !gap || value <= limit);
    return sign * (inside.length < sorted.length ? limit : sorted.at(-1));
  }

  const box = (x, y, width, height) => ({ x, y, right: x + width, top: y - height });

  // The name of a point, beside it where there is room; nothing where there is none.
  function label(name, x, y, taken, { left, right, top, bottom }) {
    const width = name.length * LETTER;
    for (const [dx, dy] of [[9, -5], [9, 13], [-9, -5], [-9, 13], [9, -19], [9, 27], [-9, -19], [-9, 27]]) {
      const place = box(dx > 0 ? x + dx : x + dx - width, y + dy, width, 11);
      const isFree = taken.every(other =>
        place.right < other.x || other.right < place.x || place.y < other.top || other.y < place.top);
      if (!isFree || place.x < left || place.right > right + MARGIN.right || place.top < top - 8 || place.y > bottom) continue;
      taken.push(place);
      return shape("text", { x: x + dx, y: y + dy, "text-anchor": dx > 0 ? "start" : "end" }, name);
    }
    return "";
  }

  // A difference with its interval, for a cell of a table; low <= 0 <= high are its ends.
  function whisker([mean, lo, hi], [low, high], kind) {
    const inside = value => Math.max(low, Math.min(high, value));
    const at = value => Number((4 + (112 * (inside(value) - low)) / (high - low)).toFixed(1));
    const chart = shape("svg", { viewBox: "0 0 120 16", class: `whisker ${kind}`, "aria-hidden": "true" },
      shape("line", { class: "zero", x1: at(0), x2: at(0), y1: 0, y2: 16 }));
    if (Number.isFinite(lo))
      chart.append(shape("line", { class: "range", x1: at(lo), x2: at(hi), y1: 8, y2: 8 }));
    if (Number.isFinite(mean)) chart.append(shape("circle", { cx: at(mean), cy: 8, r: 3.2 }));
    return chart;
  }

  // The ends of whiskers in one table, by their intervals: a few hopeless models must not flatten the others.
  function ends(rows) {
    const known = rows.flat().filter(Number.isFinite);
    const sizes = known.map(Math.abs).sort((a, b) => a - b);
    const most = 4 * sizes[Math.floor(sizes.length / 2)] || 1;
    const [low, high] = extent([0, ...known]);
    return low < high ? [Math.max(low, -most), Math.min(high, most)] : [-1, 1];
  }

  return { ends, histogram, scatter, pareto, whisker };
})();
