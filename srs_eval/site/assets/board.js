"use strict";
// The page of a board: a table for each time of prediction, and accuracy against cost.
(async () => {
  const { element } = ui;
  const board = await data.loaded("board");
  const place = document.getElementById("tables");
  let shown = null; // what the tables show

  function matches(model) {
    const words = ui.get("q").toLowerCase().split(/\s+/).filter(Boolean);
    const text = [model.title, model.id, model.family, model.mark, ...model.authors].join(" ").toLowerCase();
    const pretrained = ui.get("pretrained");
    return words.every(word => text.includes(word)) &&
      (!ui.get("mark") || model.mark === ui.get("mark")) &&
      (!ui.get("family") || model.family === ui.get("family")) &&
      (!pretrained || model.pretrained === (pretrained === "only"));
  }

  const badges = model => [
    element("span", { class: `badge ${model.mark}`, title: board.meanings[model.mark] }, model.mark),
    ...model.badges.map(([text, title]) => element("span", { class: "badge", title }, text)),
  ];

  const pageOf = model => `models/${encodeURIComponent(model.id)}.html`;

  const cell = (value, content, kind = "", below = "") =>
    element("td", { class: kind, "data-value": Number.isFinite(value) ? value : "" }, content,
      below && element("small", {}, below));

  // Long names of metrics may break behind an underscore.
  const breakable = name => name.split(/(?<=_)/).flatMap((part, n) => (n ? [element("wbr"), part] : [part]));

  function headings(metric, other) {
    return [
      ["place", "#"], ["model", "model", "text"], ["mean", metric.name], ["groups", "groups", "text"],
      ["difference", `to ${other}`], ["whisker", "", "plain"], ["verdict", "on average", "text"],
      ["users", "users better"], ["parameters", "para\u00admeters"], ["seconds", "s per user"],
      ...board.metrics.filter(m => m.default && m !== metric).map(m => [`m.${m.name}`, m.name, "extra"]),
    ];
  }

  function row(model, n, { metric, weighting, table, standings, ends }) {
    const column = model.column;
    const [value, ...range] = table.means[column];
    const [mean, lo, hi, p, verdict, better, worse] = standings[column];
    const kind = mean ? parts.kindOf([mean, lo, hi], parts.signOf(metric)) : "unsure";
    // The model that others are compared with differs from itself by 0.
    const sorted = mean ?? (verdict === "unknown" ? null : 0);
    const bold = ["best", "leads", "not significantly different"].includes(verdict);
    const link = element("a", { href: ui.link(pageOf(model)) }, model.title);
    return element("tr", { class: bold ? "bold" : "", "data-model": model.id },
      cell(n + 1, String(n + 1), "muted"),
      element("td", { class: "text model" }, link, " ", ...badges(model)),
      cell(value, ui.number(value), "strong", ui.interval(range)),
      element("td", { class: "text groups" }, table.groups[column]),
      cell(sorted, ui.signed(mean), "", mean === null ? "" : ui.interval([lo, hi])),
      element("td", { class: "plain" }, charts.whisker([mean, lo, hi], ends, kind)),
      element("td", { class: `text ${model.twin ? "muted" : kind}` }, model.twin ? `identical to ${model.twin}` : verdict,
        p === null ? "" : element("small", {}, `p ${ui.p(p)}`)),
      cell(better / (better + worse), ui.percent(better / (better + worse)), "",
        better + worse ? `${ui.count(better)} of ${ui.count(better + worse)}` : ""),
      cell(model.parameters, model.parameters === null ? "–" : ui.count(model.parameters)),
      cell(model.seconds, ui.seconds(model.seconds)),
      ...board.metrics.filter(m => m.default && m !== metric).map(m => {
        const other = m.means[weighting][column];
        return cell(other, ui.number(other), "extra");
      }),
    );
  }

  function tableOf([when, inWords], found, baseline) {
    const { metric, weighting, table, standings, users } = found;
    const models = board.models.filter(model => model.when === when);
    models.sort((a, b) => table.order.indexOf(a.column) - table.order.indexOf(b.column));
    const ends = charts.ends(models.map(({ column }) => standings[column].slice(1, 3)));
    const heads = headings(metric, baseline ? baseline.title : "best");
    const head = element("tr", {}, ...heads.map(([key, name, kind]) =>
      element("th", { "data-key": key, class: kind, scope: "col" }, ...breakable(name))));
    const rows = models.map((model, n) => row(model, n, { ...found, ends }));
    const made = element("table", { class: "sortable", id: `table-${when}` },
      element("thead", {}, head), element("tbody", {}, ...rows));
    const [, said] = table.said.find(([time]) => time === when) ?? [when, ""];
    return element("section", {},
      element("h2", {}, `Predicted ${inWords}`),
      element("p", { class: "caption" }, said && `${said} `, `${metric.name}, ${ui.DIRECTIONS[metric.better]}: `,
        `mean over ${ui.count(users)} users, ${weighting === "users" ? "each counting once" : "weighted by their reviews"}. `,
        element("span", { class: "count" })),
      element("p", { class: "sideways" }, "Scroll the table sideways for all its columns."),
      element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Predicted ${inWords}` }, made));
  }

  function filter() {
    const shownIds = new Set(board.models.filter(matches).map(model => model.id));
    for (const section of place.querySelectorAll("section")) {
      const rows = [...section.querySelectorAll("tr[data-model]")];
      for (const each of rows) each.hidden = !shownIds.has(each.dataset.model);
      const left = rows.filter(each => !each.hidden).length;
      section.querySelector(".count").textContent =
        left < rows.length ? `${left} of ${rows.length} models are shown.` : `${rows.length} ${rows.length > 1 ? "models" : "model"}.`;
    }
    drawPareto(shownIds);
  }

  function drawPareto(shownIds) {
    const { metric, table } = shown;
    const axis = ui.get("x") === "parameters" ? "parameters" : "seconds";
    const label = axis === "seconds" ? "seconds per user" : "fitted parameters per user";
    const drawn = board.times.map(([when, inWords]) => {
      const points = board.models
        .filter(model => model.when === when && shownIds.has(model.id) && model[axis] !== null)
        .map(model => ({
          name: model.title, x: model[axis], y: table.means[model.column][0], href: ui.link(pageOf(model)),
          eligible: model.eligible,
        }))
        .filter(point => Number.isFinite(point.y));
      return points.length && parts.figure(
        `Predicted ${inWords}`, charts.pareto(points, label, metric), "");
    }).filter(Boolean);
    const none = element("p", { class: "caption" }, `No model shown here states its ${label}.`);
    document.getElementById("pareto").replaceChildren(...(drawn.length ? drawn : [none]));
  }

  const draw = parts.queued(async () => {
    const [metric, weighting] = [ui.metricOf(board), ui.weighting()];
    const { n_users: users, [weighting]: table } = await data.loaded(`standings/${metric.name}`);
    const baseline = parts.modelNamed(board, ui.get("baseline"));
    const standings = baseline ? table.against[baseline.column] : table.best;
    shown = { metric, weighting, users, table, standings };
    document.getElementById("compare").href = ui.link("compare.html");
    place.replaceChildren(...board.times.map(time => tableOf(time, shown, baseline)));
    for (const each of place.querySelectorAll("table")) {
      makeSortable(each);
      each.sortBy(ui.get("sort"), ui.get("order"));
    }
    filter();
    ui.ready();
  });

  place.addEventListener("sorted", ({ target, detail: { key, order } }) => {
    ui.set(order === "none" ? { sort: "", order: "" } : { sort: key, order });
    for (const table of place.querySelectorAll("table"))
      if (table !== target) table.sortBy(key, order);
  });

  const families = [...new Set(board.models.map(model => model.family))].sort();
  document.getElementById("family").append(...families.map(family => ui.option(family)));
  const view = () => ["metric", "weighting", "baseline", "sort", "order"].map(key => ui.get(key)).join("&");
  let before = view();
  parts.controls(board, () => {
    if (view() !== before) draw();
    else if (shown) filter();
    before = view();
  });
  await draw();
})();
