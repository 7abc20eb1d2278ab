"use strict";
// The data of a board. They come as scripts, which a page may load from a folder as well as from
// a server; browsers refuse to fetch other files from a folder.
const data = (() => {
  const promises = new Map();
  const resolvers = new Map();
  const root = document.querySelector("main").dataset.board;

  function promised(key) {
    if (!promises.has(key))
      promises.set(key, new Promise(resolve => resolvers.set(key, resolve)));
    return promises.get(key);
  }

  // Called by each data file with its content.
  function receive(key, content) {
    promised(key);
    resolvers.get(key)(content);
  }

  function loaded(key) {
    if (!promises.has(key)) {
      promised(key);
      const script = document.createElement("script");
      script.src = `${root}/${key}.js`;
      script.onerror = () => ui.fail(`${script.src} cannot be read`);
      document.head.append(script);
    }
    return promises.get(key);
  }

  function numbers(base64) {
    if (Uint8Array.fromBase64) return new Float64Array(Uint8Array.fromBase64(base64).buffer);
    const text = atob(base64);
    const bytes = new Uint8Array(text.length);
    for (let n = 0; n < text.length; n++) bytes[n] = text.charCodeAt(n);
    return new Float64Array(bytes.buffer);
  }

  const columnsOf = new Map();
  // Scores of each model, one Float64Array of all users for each.
  async function scores(metric) {
    if (!columnsOf.has(metric)) {
      const flat = numbers(await loaded(`scores/${metric}`));
      const { users, columns } = await loaded("board");
      const rows = [...Array(columns).keys()];
      columnsOf.set(metric, rows.map(n => flat.subarray(n * users, (n + 1) * users)));
    }
    return columnsOf.get(metric);
  }

  let people;
  // Names and numbers of scored reviews of the users.
  async function users() {
    const content = await loaded("users");
    people ??= { names: content.names, reviews: numbers(content.reviews) };
    return people;
  }

  const board = () => loaded("board");

  // The scores of some models on the users that have one of every model with any, and the
  // positions of these users.
  async function complete(metric, models) {
    users(); // read beside the scores
    const every = await scores(metric.name);
    const given = models.map(n => every[n]);
    const known = given.filter(column => column.some(score => !Number.isNaN(score)));
    const kept = [];
    for (let n = 0; n < given[0].length; n++)
      if (known.length && known.every(column => !Number.isNaN(column[n]))) kept.push(n);
    const value = metric.better === "zero" ? Math.abs : score => score;
    const columns = given.map(column => Float64Array.from(kept, n => value(column[n])));
    return { columns, kept };
  }

  async function weights(weighting, kept) {
    const { reviews } = await users();
    return Float64Array.from(kept, n => (weighting === "reviews" ? reviews[n] : +(reviews[n] > 0)));
  }

  return { receive, board, users, complete, weights };
})();
