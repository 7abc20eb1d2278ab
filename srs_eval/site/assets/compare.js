"use strict";
// The page of two models: the difference, its strata, and their scores of each user.
(async () => {
  const { element } = ui;
  const board = await data.loaded("board");
  const place = document.getElementById("comparison");

  function summary(metric, weighting, models, found) {
    const { means, difference: [mean, ...range], p } = found[weighting];
    const [better, worse, tied] = found.counts;
    const over = weighting === "users" ? "mean over users" : "mean over reviews";
    return element("div", { class: "cards" },
      ...models.map((model, n) => parts.card(model.title, ui.number(means[n]), `${metric.name}, ${over}`)),
      parts.card("difference", ui.signed(mean), `99 % interval ${ui.interval(range)}, p ${ui.p(p)}`),
      parts.card("users better", ui.percent(better / (better + worse)),
        `${ui.count(better)} of ${ui.count(better + worse)} that differ, ${ui.count(tied)} tied; ` +
        `interval ${found.share.map(bound => ui.percent(bound)).join(" … ")}`));
  }

  function sentence(metric, [a, b], { difference: [mean, lo, hi], p, alike }, users) {
    if (p === null) return `There are too few users to compare ${a} with ${b}.`;
    if (alike) return `${a} and ${b} have the same scores.`;
    const by = `by ${metric.name} over ${ui.count(users)} users.`;
    const kind = parts.kindOf([mean, lo, hi], parts.signOf(metric));
    return kind === "unsure" ? `${a} and ${b} are not significantly different ${by}` : `${a} is ${kind} than ${b} ${by}`;
  }

  // The verdict on the board, where every model is compared with the second one.
  async function onBoard(metric, weighting, a, b) {
    const { against } = (await data.loaded(`standings/${metric.name}`))[weighting];
    const [, lo, hi, p, verdict] = against[b.column][a.column];
    const link = element("a", { href: ui.link("index.html", { baseline: b.id }) }, "On the board");
    const found = p === null ? "." : `, adjusted for all comparisons with ${b.title}: ` +
      `${verdict}, interval ${ui.interval([lo, hi])}, p ${ui.p(p)}.`;
    return element("p", { class: "caption", id: "adjusted" },
      "Interval and p-value below are for this one comparison, chosen beforehand: they are not adjusted for others. ",
      link, found);
  }

  async function scatter(metric, a, b) {
    const flat = new Float64Array(Uint8Array.from(atob(await data.loaded(`scores/${metric.name}`)), each => each.charCodeAt(0)).buffer);
    const [ours, theirs] = [a, b].map(({ column }) => flat.subarray(column * board.n_users, (column + 1) * board.n_users));
    const kept = [...ours.keys()].filter(n => !Number.isNaN(ours[n] + theirs[n]));
    const chart = charts.scatter(kept.map(n => theirs[n]), kept.map(n => ours[n]), `${metric.name} of ${b.title}`, `${metric.name} of ${a.title}`);
    return parts.figure("", chart, `One dot for each user; ${a.title} is better ${metric.better === "higher" ? "above" : "below"} the line.`);
  }

  const draw = parts.queued(async () => {
    const [metric, weighting] = [ui.metricOf(board), ui.weighting()];
    const a = parts.modelNamed(board, ui.get("a")) ?? board.models[0];
    const b = parts.modelNamed(board, ui.get("b")) ?? board.models.find(model => model !== a) ?? a;
    ui.set({ a: a.id, b: b.id }); // the first two models change with the next submission
    document.getElementById("a").value = a.id;
    document.getElementById("b").value = b.id;
    const found = (await data.loaded(`pairs/${metric.name}/${a.column}`)).against[b.column];
    const [models, titles] = [[a, b], `${a.title} less ${b.title}`];
    const notes = [];
    if (a.when !== b.when) {
      const inWords = new Map(board.times);
      notes.push(`${a.title} predicts ${inWords.get(a.when)}, ${b.title} ${inWords.get(b.when)}: the difference also contains what became known in between.`);
    }
    for (const { title, mark } of models)
      if (mark === "published")
        notes.push(`${title} does not say which reviews it scored: users were matched by name and number of reviews.`);
    document.title = `${a.title} and ${b.title} compared`;
    const { histogram } = found;
    place.replaceChildren(
      element("p", { class: "lead" }, sentence(metric, models.map(model => model.title), found[weighting], found.n_users)),
      await onBoard(metric, weighting, a, b),
      ...notes.map(note => element("p", { class: "note" }, note)),
      summary(metric, weighting, models, found),
      ...(histogram ? [
        element("div", { class: "figures" },
          parts.figure("Differences", charts.histogram(histogram, `${metric.name}: ${titles}`),
            `Users by ${titles}; ${metric.better === "higher" ? "above" : "below"} 0, ${a.title} is better.`),
          element("div", {}, element("h3", {}, "By number of reviews"),
            parts.strata(found[weighting].strata, parts.signOf(metric)),
            element("p", { class: "caption" }, "Intervals are of each stratum alone, not adjusted for their number."))),
        parts.opened("User by user", () => scatter(metric, a, b))] : []));
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
