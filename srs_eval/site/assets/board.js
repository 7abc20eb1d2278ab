"use strict";
// The page of a board: a table for each time of prediction, and accuracy against cost.
(async () => {
  const { element } = ui;
  const board = await data.board();
  const place = document.getElementById("tables");
  let shown = null; // what the tables show, computed again only if metric or weighting change

  async function computed(metric, weighting) {
    if (shown?.metric !== metric || shown.weighting !== weighting)
      shown = { metric, weighting, ...(await parts.compared(board, metric, weighting)) };
    return shown;
  }

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

  const letter = n => String.fromCharCode(97 + (n % 26)) + "'".repeat(Math.floor(n / 26));
  const letters = (cliques, column) =>
    cliques.map((clique, n) => (clique.includes(column) ? letter(n) : "")).join("");

  // Long names of metrics may break behind an underscore.
  const breakable = name => name.split(/(?<=_)/).flatMap((part, n) => (n ? [element("wbr"), part] : [part]));
  // With a dagger if its scores are not recomputed from the sums of a submission.
  const named = metric => metric.name + (metric.recomputed ? "" : "\u00a0†");

  function headings(metric, other) {
    return [
      ["place", "#"], ["model", "model", "text"], ["mean", named(metric)], ["groups", "groups", "text"],
      ["difference", `to ${other}`], ["whisker", "", "plain"], ["verdict", "on average", "text"],
      ["users", "users better"], ["parameters", "para\u00admeters"], ["seconds", "s per user"],
      ...board.metrics.filter(m => m.default && m !== metric).map(m => [`m.${m.name}`, named(m), "extra"]),
    ];
  }

  function row(model, n, { metric, weighting, table }, standings, cliques, ends) {
    const column = model.column;
    const one = standings[column];
    const { mean } = one.difference;
    const { lo, hi, verdict, p } = one.average;
    const [low, high] = ["lo", "hi"].map(side => metric[side][weighting][column] ?? NaN);
    const share = one.counts.better / (one.counts.better + one.counts.worse);
    const kind = mean ? parts.kindOf({ mean, lo, hi }, table.sign) : "unsure";
    const twin = board.models.find(other => other.id === model.twin);
    const leads = ["best", "leads"].includes(verdict);
    const link = element("a", { href: ui.link(pageOf(model)) }, model.title);
    return element("tr", { class: leads || verdict === "not significantly different" ? "bold" : "", "data-model": model.id },
      cell(n + 1, String(n + 1), "muted"),
      element("td", { class: "text model" }, link, " ", ...badges(model)),
      cell(table.means[column], ui.number(table.means[column]), "strong", ui.interval([low, high])),
      element("td", { class: "text groups" }, letters(cliques, column)),
      cell(mean, ui.signed(mean), "", Number.isFinite(mean) ? ui.interval([lo, hi]) : ""),
      element("td", { class: "plain" }, charts.whisker({ mean, lo, hi }, ends, kind)),
      element("td", { class: `text ${twin ? "muted" : kind}` }, twin ? `identical to ${twin.title}` : verdict,
        Number.isFinite(p) ? element("small", {}, `p ${ui.p(p)}`) : ""),
      cell(share, ui.percent(share), "", Number.isFinite(share) ? ui.count(one.counts.better) + " of " + ui.count(one.counts.better + one.counts.worse) : ""),
      cell(model.parameters ?? NaN, model.parameters === null ? "–" : ui.count(model.parameters)),
      cell(model.seconds ?? NaN, ui.seconds(model.seconds ?? NaN)),
      ...board.metrics.filter(m => m.default && m !== metric).map(m => {
        const value = m.means[weighting][column] ?? NaN;
        return cell(value, ui.number(value), "extra");
      }),
    );
  }

  function tableOf(when, found, baseline, standings) {
    const { metric, weighting, table } = found;
    const time = board.times.indexOf(when);
    const rank = new Map(table.order.map((column, n) => [column, n]));
    const models = board.models.filter(model => model.when === when);
    models.sort((a, b) => rank.get(a.column) - rank.get(b.column));
    const cliques = table.cliques(time);
    const ends = charts.ends(models.map(({ column }) => standings[column].average));
    const heads = headings(metric, baseline ? baseline.title : "best");
    const head = element("tr", {}, ...heads.map(([key, name, kind]) =>
      element("th", { "data-key": key, class: kind, scope: "col" }, ...breakable(name))));
    const rows = models.map((model, n) => row(model, n, found, standings, cliques, ends));
    const made = element("table", { class: "sortable", id: `table-${when}` },
      element("thead", {}, head), element("tbody", {}, ...rows));
    const leader = models.find(model => model.column === table.leaders[model.column]);
    const isBest = leader && table.toBest()[leader.column].average.verdict === "best";
    const entropy = board.metrics.find(m => m.name === "normalized_entropy");
    const isWorse = leader && entropy && entropy.means.users[leader.column] > 1;
    const known = "a constant that is known only afterwards, each user's share of recalls";
    const but = isWorse ? `, but by mean normalized_entropy worse than ${known}` : "";
    const said = leader ? `${leader.title} ${isBest ? "predicts best" : "leads"}${but}. ` : "";
    return element("section", {},
      element("h2", {}, `Predicted ${board.inWords[when]}`),
      element("p", { class: "caption" }, said, `${metric.name}, ${ui.DIRECTIONS[metric.better]}: `,
        `mean over ${ui.count(found.users)} users, ${weighting === "users" ? "each counting once" : "weighted by their reviews"}. `,
        element("span", { class: "count" })),
      element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Predicted ${board.inWords[when]}` }, made));
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
    const drawn = board.times.map(when => {
      const points = board.models
        .filter(model => model.when === when && shownIds.has(model.id) && model[axis] !== null)
        .map(model => ({
          name: model.title, x: model[axis], y: table.means[model.column], href: ui.link(pageOf(model)),
          eligible: model.eligible,
        }))
        .filter(point => Number.isFinite(point.y));
      return points.length && parts.figure(
        `Predicted ${board.inWords[when]}`, charts.pareto(points, label, metric), "");
    }).filter(Boolean);
    const none = element("p", { class: "caption" }, `No model shown here states its ${label}.`);
    document.getElementById("pareto").replaceChildren(...(drawn.length ? drawn : [none]));
  }

  const draw = parts.queued(async () => {
    const found = await computed(ui.metricOf(board), ui.weighting());
    const baseline = parts.modelNamed(board, ui.get("baseline"));
    const { table } = found;
    const standings = baseline ? table.toBaseline(baseline.column) : table.toBest();
    document.getElementById("compare").href = ui.link("compare.html");
    place.replaceChildren(...board.times.map(when => tableOf(when, found, baseline, standings)));
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
