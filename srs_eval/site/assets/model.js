"use strict";
// The page of a model: its scores over users, and its differences to a baseline.
(async () => {
  const { element } = ui;
  const FEWEST_OF_RANGE = 20; // with fewer users, 90 % of them are nearly all
  const board = await data.board();
  const place = document.getElementById("scores");
  const model = parts.modelNamed(board, document.querySelector("main").dataset.model);

  // Ranks of the model over users: 1 is best, ties share theirs.
  function ranks(columns, at, sign) {
    return columns[at].map((score, user) => {
      let [before, same] = [0, 0];
      for (const column of columns) {
        if (sign * column[user] < sign * score) before += 1;
        else if (column[user] === score) same += 1;
      }
      return before + (same + 1) / 2;
    });
  }

  function extremes(gap, kept, names, sign) {
    const order = [...gap.keys()].sort((a, b) => sign * (gap[a] - gap[b]));
    const listed = users => element("ul", { class: "plain-list" },
      ...users.map(n => element("li", {}, `${names[kept[n]]} `, element("span", { class: "muted" }, ui.signed(gap[n])))));
    return element("div", { class: "columns" },
      element("div", {}, element("h3", {}, "Best for users"), listed(order.filter(n => sign * gap[n] < 0).slice(0, 5))),
      element("div", {}, element("h3", {}, "Worst for users"), listed(order.filter(n => sign * gap[n] > 0).reverse().slice(0, 5))));
  }

  async function overUsers(metric, weighting, sign) {
    const { columns: [scores], kept: known } = await data.complete(metric, [model.column]);
    const sorted = Float64Array.from(scores).sort();
    const at = share => ui.number(charts.quantile(sorted, share));
    const mean = metric.means[weighting][model.column] ?? NaN;
    const [lo, hi] = ["lo", "hi"].map(side => metric[side][weighting][model.column] ?? NaN);
    const cards = [
      parts.card(metric.name, ui.number(mean), `99 % interval ${ui.interval([lo, hi])}`),
      parts.card("median user", at(0.5), `middle half of users ${at(0.25)} … ${at(0.75)}`),
    ];
    if (known.length >= FEWEST_OF_RANGE)
      cards.push(parts.card("range", `${at(0.05)} … ${at(0.95)}`, `90 % of ${ui.count(known.length)} users`));
    const figures = known.length > 1
      ? [parts.figure("Distribution over users", charts.histogram(scores, metric.name), "The line is the median user.")]
      : [];
    const { table } = await parts.compared(board, metric, "users");
    const peers = table.order.filter(n => table.leaders[n] === table.leaders[model.column]);
    if (peers.length > 1 && !Number.isNaN(table.means[model.column]) && table.weights.length) {
      const found = ranks(peers.map(n => table.columns[n]), peers.indexOf(model.column), sign);
      const rank = found.reduce((sum, each) => sum + each, 0) / found.length;
      const first = found.filter(each => each === 1).length / found.length;
      const among = `of ${peers.length} models with the same leader`;
      cards.push(parts.card("mean rank over users", ui.number(rank, 2), `${among}; first for ${ui.percent(first)} of users`));
      const options = { ends: [0.5, peers.length + 0.5], bins: peers.length };
      figures.push(parts.figure("Stability over users", charts.histogram(found, "rank", options),
        `Rank ${among}: 1 is best, ties share a rank. The line is the median user.`));
    }
    return [element("div", { class: "cards" }, ...cards), element("div", { class: "figures" }, ...figures)];
  }

  // The best other model of the same time, unless another one is chosen.
  function baselineOf(metric, weighting, sign) {
    const others = board.models.filter(each => each.column !== model.column);
    const mean = each => sign * (metric.means[weighting][each.column] ?? Infinity);
    const rivals = others.filter(each => each.when === model.when && each.eligible);
    return others.find(each => each.id === ui.get("baseline")) ??
      (rivals.length ? rivals : others).sort((a, b) => mean(a) - mean(b))[0];
  }

  async function against(baseline, metric, weighting, sign) {
    const { columns: [ours, theirs], kept } = await data.complete(metric, [model.column, baseline.column]);
    if (kept.length < 2 || [ours, theirs].some(column => Number.isNaN(column[0]))) return [];
    const weights = await data.weights(weighting, kept);
    const { names, reviews } = await data.users();
    const gap = ours.map((score, n) => score - theirs[n]);
    const counted = kept.map(n => reviews[n]);
    const compare = ui.link("../compare.html", { a: model.id, b: baseline.id });
    return [
      element("h2", {}, `Against ${baseline.title}`),
      element("p", { class: "caption" },
        `${metric.name}, ${ui.DIRECTIONS[metric.better]}. `, element("a", { href: compare }, "Compare them user by user")),
      element("div", { class: "figures" },
        parts.figure("Differences of users", charts.histogram(gap, `${metric.name}: difference to ${baseline.title}`, { zero: true }),
          `${metric.better === "higher" ? "Above" : "Below"} 0, ${model.title} is better.`),
        element("div", {}, element("h3", {}, "By number of reviews"),
          parts.strata(board, gap, weights, counted, sign),
          extremes(gap, kept, names, sign))),
    ];
  }

  const draw = parts.queued(async () => {
    const metric = ui.metricOf(board);
    const weighting = ui.weighting();
    const sign = metric.better === "higher" ? -1 : 1;
    const baseline = baselineOf(metric, weighting, sign);
    const drawn = await overUsers(metric, weighting, sign);
    if (baseline) {
      document.getElementById("baseline").value = baseline.id;
      drawn.push(...(await against(baseline, metric, weighting, sign)));
    }
    place.replaceChildren(...drawn);
    ui.ready();
  });

  parts.controls(board, draw);
  await draw();
})();
