"use strict";
// The page of two models: their scores of each user, the difference, and its strata.
(async () => {
  const { element } = ui;
  const board = await data.board();
  const place = document.getElementById("comparison");

  function summary(metric, weighting, models, found) {
    const { means, difference, counts } = found;
    const [lo, hi] = inference.interval(difference);
    const [low, high] = inference.shareInterval(counts);
    const differ = counts.better + counts.worse;
    const over = weighting === "users" ? "mean over users" : "mean over reviews";
    const p = inference.pValue(difference);
    return element("div", { class: "cards" },
      ...models.map((model, n) => parts.card(model.title, ui.number(means[n]), `${metric.name}, ${over}`)),
      parts.card("difference", ui.signed(difference.mean), `99 % interval ${ui.interval([lo, hi])}, p ${ui.p(p)}`),
      parts.card("users better", ui.percent(counts.better / differ),
        `${ui.count(counts.better)} of ${ui.count(differ)} that differ, ${ui.count(counts.tied)} tied; ` +
        `interval ${ui.percent(low)} … ${ui.percent(high)}`));
  }

  function sentence(metric, models, { difference, users }, sign) {
    const [a, b] = models.map(model => model.title);
    const p = inference.pValue(difference);
    if (Number.isNaN(p)) return `There are too few users to compare ${a} with ${b}.`;
    if (inference.isZero(difference)) return `${a} and ${b} have the same scores.`;
    if (p >= inference.ALPHA) return `${a} and ${b} are not significantly different by ${metric.name} over ${ui.count(users)} users.`;
    const word = sign * difference.mean < 0 ? "better" : "worse";
    return `${a} is ${word} than ${b} by ${metric.name} over ${ui.count(users)} users.`;
  }

  // The verdict on the board, where every model is compared with the second one.
  async function onBoard(metric, weighting, a, b) {
    const { table } = await parts.compared(board, metric, weighting);
    const { verdict, p, lo, hi } = table.toBaseline(b.column)[a.column].average;
    const link = element("a", { href: ui.link("index.html", { baseline: b.id }) }, "On the board");
    const found = Number.isNaN(p) ? "." : `, adjusted for all comparisons with ${b.title}: ` +
      `${verdict}, interval ${ui.interval([lo, hi])}, p ${ui.p(p)}.`;
    return element("p", { class: "caption", id: "adjusted" },
      "Interval and p-value below are for this one comparison, chosen beforehand: they are not adjusted for others. ",
      link, found);
  }

  const draw = parts.queued(async () => {
    const metric = ui.metricOf(board);
    const weighting = ui.weighting();
    const a = parts.modelNamed(board, ui.get("a")) ?? board.models[0];
    const b = parts.modelNamed(board, ui.get("b")) ?? board.models.find(model => model !== a) ?? a;
    ui.set({ a: a.id, b: b.id }); // the first two models change with the next submission
    document.getElementById("a").value = a.id;
    document.getElementById("b").value = b.id;
    const { columns: [ours, theirs], kept } = await data.complete(metric, [a.column, b.column]);
    const weights = await data.weights(weighting, kept);
    const reviews = (await data.users()).reviews;
    const counted = kept.map(n => reviews[n]);
    const sign = metric.better === "higher" ? -1 : 1;
    const gap = ours.map((score, n) => score - theirs[n]);
    const size = [ours, theirs].reduce((m, column) => column.reduce((k, x) => Math.max(k, Math.abs(x)), m), 0);
    const found = {
      means: [ours, theirs].map(column => inference.meanOfUsers(column, weights, 0).mean),
      difference: inference.meanOfUsers(gap, weights, size),
      counts: inference.signs(ours, theirs, sign),
      users: kept.length,
    };
    const models = [a, b];
    const titles = `${a.title} less ${b.title}`;
    const notes = [];
    if (a.when !== b.when)
      notes.push(`${a.title} predicts ${board.inWords[a.when]}, ${b.title} ${board.inWords[b.when]}: the difference also contains what became known in between.`);
    for (const { title, mark } of models)
      if (mark === "published")
        notes.push(`${title} does not say which reviews it scored: users were matched by name and number of reviews.`);
    document.title = `${a.title} and ${b.title} compared`;
    place.replaceChildren(
      element("p", { class: "lead" }, sentence(metric, models, found, sign)),
      await onBoard(metric, weighting, a, b),
      ...notes.map(note => element("p", { class: "note" }, note)),
      summary(metric, weighting, models, found),
      ...(kept.length < 2 || Number.isNaN(found.difference.mean) ? [] : [
        element("div", { class: "figures" },
          parts.figure("User by user", charts.scatter(theirs, ours, `${metric.name} of ${b.title}`, `${metric.name} of ${a.title}`),
            `One dot for each user; ${a.title} is better ${metric.better === "higher" ? "above" : "below"} the line.`),
          element("div", {},
            parts.figure("Differences", charts.histogram(gap, `${metric.name}: ${titles}`, { zero: true }),
              `Users by ${titles}; ${metric.better === "higher" ? "above" : "below"} 0, ${a.title} is better.`),
            element("h3", {}, "By number of reviews"),
            parts.strata(board, gap, weights, counted, sign),
            element("p", { class: "caption" }, "Intervals are of each stratum alone, not adjusted for their number.")))]));
    ui.ready();
  });

  parts.controls(board, draw);
  document.getElementById("swap").addEventListener("click", () => {
    const [a, b] = ["a", "b"].map(id => document.getElementById(id).value);
    ui.set({ a: b, b: a });
    draw();
  });
  await draw();
})();
