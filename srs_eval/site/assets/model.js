"use strict";
// The page of a model: its scores over users, and its differences to a baseline.
(async () => {
  const { element } = ui;
  const FEWEST_OF_RANGE = 20; // with fewer users, 90 % of them are nearly all
  const board = await data.loaded("board");
  const place = document.getElementById("scores");
  const model = parts.modelNamed(board, document.querySelector("main").dataset.model);

  function overUsers(metric, [mean, ...range], { n_users: users, quantiles, histogram, ranks }) {
    const [low, first, median, third, high] = quantiles.map(value => ui.number(value));
    const cards = [
      parts.card(metric.name, ui.number(mean), `99 % interval ${ui.interval(range)}`),
      parts.card("median user", median ?? "–", `middle half of users ${first ?? "–"} … ${third ?? "–"}`),
    ];
    if (users >= FEWEST_OF_RANGE)
      cards.push(parts.card("range", `${low} … ${high}`, `90 % of ${ui.count(users)} users`));
    const figures = histogram
      ? [parts.figure("Distribution over users", charts.histogram(histogram, metric.name), "The line is the median user.")]
      : [];
    if (ranks) {
      const among = `of ${ranks.peers} models with the same leader`;
      cards.push(parts.card("mean rank over users", ui.number(ranks.mean, 2), `${among}; first for ${ui.percent(ranks.first)} of users`));
      figures.push(parts.figure("Stability over users", charts.histogram(ranks.histogram, "rank"),
        `Rank ${among}: 1 is best, ties share a rank. The line is the median user.`));
    }
    return [element("div", { class: "cards" }, ...cards), element("div", { class: "figures" }, ...figures)];
  }

  // The best other model of the same time, unless another one is chosen.
  function baselineOf({ order }) {
    const others = order.map(column => board.models.find(each => each.column === column && !each.twin))
      .filter(each => each.column !== model.column);
    return board.models.find(each => each.id === ui.get("baseline") && each.column !== model.column) ??
      others.find(each => each.when === model.when && each.eligible) ?? others[0];
  }

  const extremes = (title, users) => element("div", {}, element("h3", {}, title),
    element("ul", { class: "plain-list" }, ...users.map(([name, gap]) =>
      element("li", {}, `${name} `, element("span", { class: "muted" }, ui.signed(gap))))));

  function against(baseline, metric, weighting, { histogram, extremes: [gains, losses], ...found }) {
    if (!histogram) return [];
    const compare = ui.link("../compare.html", { a: model.id, b: baseline.id });
    return [
      element("h2", {}, `Against ${baseline.title}`),
      element("p", { class: "caption" },
        `${metric.name}, ${ui.DIRECTIONS[metric.better]}. `, element("a", { href: compare }, "Compare them user by user")),
      element("div", { class: "figures" },
        parts.figure("Differences of users", charts.histogram(histogram, `${metric.name}: difference to ${baseline.title}`),
          `${metric.better === "higher" ? "Above" : "Below"} 0, ${model.title} is better.`),
        element("div", {}, element("h3", {}, "By number of reviews"),
          parts.strata(found[weighting].strata, parts.signOf(metric)),
          element("div", { class: "columns" },
            extremes("Best for users", gains), extremes("Worst for users", losses)))),
    ];
  }

  const draw = parts.queued(async () => {
    const [metric, weighting] = [ui.metricOf(board), ui.weighting()];
    const own = await data.loaded(`pairs/${metric.name}/${model.column}`);
    const table = (await data.loaded(`standings/${metric.name}`))[weighting];
    const baseline = baselineOf(table);
    const drawn = overUsers(metric, table.means[model.column], own);
    if (baseline) {
      document.getElementById("baseline").value = baseline.id;
      drawn.push(...against(baseline, metric, weighting, own.against[baseline.column]));
    }
    place.replaceChildren(...drawn);
    ui.ready();
  });

  parts.controls(board, draw);
  await draw();
})();
