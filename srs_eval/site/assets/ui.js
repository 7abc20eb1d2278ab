"use strict";
// The data of a board come as scripts, which a page may load from a folder as well as from a server;
// browsers refuse to fetch other files from a folder. Each calls `receive` with its content.
const data = (() => {
  const root = document.querySelector("main").dataset.board;
  const [promises, resolvers] = [new Map(), new Map()];

  function loaded(key) {
    if (!promises.has(key)) {
      promises.set(key, new Promise(resolve => resolvers.set(key, resolve)));
      const script = document.createElement("script");
      script.src = `${root}/${key}.js`;
      script.onerror = () => ui.fail(`${script.src} cannot be read`);
      document.head.append(script);
    }
    return promises.get(key);
  }

  return { receive: (key, content) => resolvers.get(key)(content), loaded };
})();

// Elements, numbers as text, and the state of a page, which is kept in its address.
const ui = (() => {
  const SVG = "http://www.w3.org/2000/svg";

  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes))
      if (value !== undefined && value !== "") node.setAttribute(name, value);
    // strings become text, never markup
    node.append(...children.filter(child => child !== "" && child != null));
    return node;
  }

  const element = (tag, attributes = {}, ...children) =>
    fill(document.createElement(tag), attributes, children);
  const shape = (tag, attributes = {}, ...children) =>
    fill(document.createElementNS(SVG, tag), attributes, children);

  function fail(text) {
    document.querySelector("main").prepend(element("p", { class: "error", role: "alert" }, text));
  }

  // Mark the page as drawn, for tests and measurements.
  function ready() {
    performance.mark("shown");
    document.documentElement.dataset.ready = "true";
  }

  const fixed = (value, digits) => {
    const text = value.toFixed(digits);
    return Number(text) === 0 ? (0).toFixed(digits) : text.replace("-", "−");
  };
  const number = (value, digits = 4) => (Number.isFinite(value) ? fixed(value, digits) : "–");
  const signed = value =>
    Number.isFinite(value) && Number(value.toFixed(4)) > 0 ? `+${number(value)}` : number(value);
  const percent = (value, digits = 1) =>
    Number.isFinite(value) ? `${number(100 * value, digits)} %` : "–";
  const count = value => value.toLocaleString("en");

  // Enough digits to show the signs of the bounds.
  function interval([lo, hi], digits = 4) {
    if (!Number.isFinite(lo) || !Number.isFinite(hi)) return "–";
    const sizes = [lo, hi].filter(Boolean).map(Math.abs);
    while (Math.min(...sizes) < 0.5 * 10 ** -digits && digits < 9) digits++;
    return `${number(lo, digits)} … ${number(hi, digits)}`;
  }

  function seconds(value) {
    if (!Number.isFinite(value)) return "–";
    if (value === 0) return "0";
    return value >= 100 ? count(Math.round(value)) : String(Number(value.toPrecision(2)));
  }

  // Below 0.01 in print exactly if below 0.01.
  function p(value) {
    if (!Number.isFinite(value)) return "–";
    if (value < 1e-12) return "<1e-12";
    const text = value < 0.001 ? value.toExponential(0) : value.toFixed(3);
    return value < 0.01 && Number(text) >= 0.01 ? "<0.01" : text;
  }

  let query = new URLSearchParams(location.hash.slice(1));
  const listeners = [];

  const get = (key, fallback = "") => query.get(key) ?? fallback;

  // Change the state; an empty value removes a key.
  function set(changes) {
    for (const [key, value] of Object.entries(changes))
      if (value) query.set(key, value);
      else query.delete(key);
    history.replaceState(null, "", `#${query}`);
  }

  window.addEventListener("hashchange", () => {
    query = new URLSearchParams(location.hash.slice(1));
    for (const listener of listeners) listener();
  });

  // A page with the same choices.
  function link(page, changes = {}) {
    const chosen = new URLSearchParams();
    for (const key of ["metric", "weighting", "baseline"])
      if (query.get(key)) chosen.set(key, query.get(key));
    for (const [key, value] of Object.entries(changes)) chosen.set(key, value);
    return chosen.size ? `${page}#${chosen}` : page;
  }

  // Bind a control to a key of the state. Unknown values from an address count as no value.
  function bind(control, key, changed) {
    const restore = () => {
      const wanted = get(key);
      const known = control.tagName !== "SELECT" ||
        [...control.options].some(option => option.value === wanted);
      if (known) control.value = wanted;
      else control.selectedIndex = 0;
    };
    restore();
    listeners.push(restore);
    control.addEventListener("input", () => {
      set({ [key]: control.value });
      changed();
    });
  }

  const onChange = listener => listeners.push(listener);

  const option = (value, text = value) => element("option", { value }, text);

  // The metric of the state, or the first.
  const metricOf = board =>
    board.metrics.find(metric => metric.name === get("metric")) ?? board.metrics[0];
  const weighting = () => (get("weighting") === "reviews" ? "reviews" : "users");

  const DIRECTIONS = {
    lower: "lower is better", higher: "higher is better", zero: "nearest to 0 is best",
  };

  return {
    element, shape, fail, ready, number, signed, percent, count, interval, seconds, p, get, set, link,
    bind, onChange, option, metricOf, weighting, DIRECTIONS,
  };
})();
