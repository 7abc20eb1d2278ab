"use strict";
// Parts that several pages of a board share.
const parts = (() => {
  const { element } = ui;

  // Fill the select elements of metric and models, and bind all controls to the state.
  function controls(board, changed) {
    document.getElementById("metric").append(...board.metrics.map(each => ui.option(each.name)));
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
  const signOf = metric => (metric.better === "higher" ? -1 : 1);

  // better, worse or unsure, by the interval.
  function kindOf([mean, lo, hi], sign) {
    if (!(lo > 0 || hi < 0)) return "unsure";
    return sign * mean < 0 ? "better" : "worse";
  }

  // Differences by number of reviews: a row with the mean and its interval for each stratum.
  function strata(rows, sign) {
    const ends = charts.ends(rows.map(([, , , ...range]) => range));
    const line = (tag, cells) => element("tr", {}, ...cells.map((cell, n) => element(tag, { class: n ? "" : "text" }, cell)));
    return element("div", { class: "scroll" }, element("table", {},
      element("thead", {}, line("th", ["reviews of the user", "users", "difference", "99 % interval", ""])),
      element("tbody", {}, ...rows.map(([label, users, ...found]) => line("td", [
        label, ui.count(users), ui.signed(found[0]), ui.interval(found.slice(1)),
        charts.whisker(found, ends, kindOf(found, sign))])))));
  }

  const figure = (title, chart, caption) =>
    element("figure", {}, title && element("h3", {}, title), chart, element("figcaption", {}, caption));

  const card = (title, value, below = "") =>
    element("div", { class: "card" }, element("span", { class: "muted" }, title),
      element("strong", {}, value), element("small", {}, below));

  // What is made only once a visitor opens it.
  function opened(title, make) {
    const details = element("details", {}, element("summary", {}, title));
    details.addEventListener("toggle", async () => details.append(await make()), { once: true });
    return details;
  }

  return { controls, queued, modelNamed, signOf, kindOf, strata, figure, card, opened };
})();
