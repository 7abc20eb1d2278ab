"use strict";
// Parts that several pages of a board share.
const parts = (() => {
  const { element } = ui;

  // Fill the select elements of metric, weighting and models, and bind them to the state.
  function controls(board, changed) {
    const metric = document.getElementById("metric");
    metric?.append(...board.metrics.map(each => ui.option(each.name)));
    for (const select of document.querySelectorAll("select[data-models]"))
      select.append(...board.models.map(model => ui.option(model.id, model.title)));
    for (const control of document.querySelectorAll("[data-state]"))
      ui.bind(control, control.dataset.state, changed);
    ui.onChange(changed);
  }

  // Draw one view after the other: the last one drawn is the last one asked for.
  function queued(draw) {
    let last = Promise.resolve();
    return () => (last = last.then(draw));
  }

  const modelNamed = (board, id) => board.models.find(model => model.id === id);

  // All models of a board by one metric, and the number of users they are compared on.
  async function compared(board, metric, weighting) {
    const { columns, kept } = await data.complete(metric, [...Array(board.columns).keys()]);
    const models = columns.map((_, n) =>
      board.models.find(model => model.column === n && model.twin === null),
    );
    const table = new standing.Table({
      columns,
      weights: await data.weights(weighting, kept),
      means: metric.means[weighting].map(mean => mean ?? NaN),
      times: models.map(model => board.times.indexOf(model.when)),
      eligible: models.map(model => model.eligible),
      sign: metric.better === "higher" ? -1 : 1,
    });
    return { table, users: kept.length };
  }

  // Strata by number of reviews: a row with the mean difference and its interval for each.
  function strata(board, difference, weights, reviews, sign) {
    const { edges, labels } = board.strata;
    const rows = labels.map((label, n) => {
      const inside = weights.map((weight, user) =>
        reviews[user] >= edges[n] && (n + 1 === labels.length || reviews[user] < edges[n + 1]) ? weight : 0,
      );
      const users = inside.filter(weight => weight > 0).length;
      const found = inference.meanOfUsers(difference, inside, 1);
      const [lo, hi] = inference.interval(found);
      return { label, users, mean: found.mean, lo, hi };
    }).filter(row => row.users);
    const ends = charts.ends(rows);
    return element("div", { class: "scroll" },
      element("table", {},
        element("thead", {}, element("tr", {},
          ...["reviews of the user", "users", "difference", "99 % interval", ""].map((name, n) =>
            element("th", { class: n ? "" : "text" }, name)))),
        element("tbody", {}, ...rows.map(row => element("tr", {},
          element("td", { class: "text" }, row.label),
          element("td", {}, ui.count(row.users)),
          element("td", {}, ui.signed(row.mean)),
          element("td", {}, ui.interval([row.lo, row.hi])),
          element("td", {}, charts.whisker(row, ends, kindOf(row, sign))))))));
  }

  // better, worse or unsure, by the interval.
  function kindOf({ mean, lo, hi }, sign) {
    if (!(lo > 0 || hi < 0)) return "unsure";
    return sign * mean < 0 ? "better" : "worse";
  }

  const figure = (title, chart, caption) =>
    element("figure", {}, element("h3", {}, title), chart, element("figcaption", {}, caption));

  const card = (title, value, below = "") =>
    element("div", { class: "card" }, element("span", { class: "muted" }, title),
      element("strong", {}, value), element("small", {}, below));

  return { queued, compared, controls, modelNamed, strata, kindOf, figure, card };
})();
