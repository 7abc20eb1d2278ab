"use strict";
// Models of a board against their leaders, or against a baseline, adjusted for the number of
// comparisons: srs_eval.comparison.standing in the browser.
const standing = (() => {
  const { ALPHA } = inference;

  function verdict(p, isZero, isWorse) {
    if (Number.isNaN(p)) return "unknown";
    if (isZero) return "identical";
    if (p >= ALPHA) return "not significantly different";
    return isWorse ? "worse" : "better";
  }

  const alone = word => ({
    difference: { mean: NaN, se: NaN, skewness: NaN, df: NaN },
    counts: { better: 0, worse: 0, tied: 0 },
    average: { verdict: word, p: NaN, factor: 1, lo: NaN, hi: NaN },
    users: { verdict: word, p: NaN, factor: 1, lo: NaN, hi: NaN },
  });

  function mirroredAnswer(answer, total) {
    const word = { better: "worse", worse: "better" }[answer.verdict] ?? answer.verdict;
    return { ...answer, verdict: word, lo: total - answer.hi, hi: total - answer.lo };
  }

  const mirrored = ({ difference, counts, average, users }) => ({
    difference: inference.mirrored(difference),
    counts: { better: counts.worse, worse: counts.better, tied: counts.tied },
    average: mirroredAnswer(average, 0),
    users: mirroredAnswer(users, 1),
  });

  // One metric of the models of a board over the users that have a score of every model.
  //
  // columns: scores of each model; weights of the users; means, times and eligibility of the
  // models; sign: 1 if lower is better, -1 if higher is.
  class Table {
    constructor({ columns, weights, means, times, eligible, sign }) {
      Object.assign(this, { columns, weights, means, times, sign });
      this.largest = columns.map(column => column.reduce((m, x) => Math.max(m, Math.abs(x)), 0));
      this.known = new Map();
      this.difference = new Float64Array(weights.length); // of one pair at a time
      const known = means.map(mean => !Number.isNaN(mean));
      this.eligible = eligible.map((is, n) => is && known[n]);
      this.anyBest = this.eligible.some(Boolean);
      if (!this.anyBest) this.eligible = known;
      this.order = [...columns.keys()].sort(
        (a, b) => times[a] - times[b] || known[b] - known[a] || sign * (means[a] - means[b]) || a - b,
      );
      this.leaders = this.leadersOfTimes();
    }

    leadersOfTimes() {
      const found = [];
      let leader = -1;
      for (const time of [...new Set(this.times)].sort((a, b) => a - b)) {
        const group = this.order.filter(model => this.times[model] === time);
        leader = group.find(model => this.eligible[model]) ?? leader;
        for (const model of group) found[model] = leader;
      }
      return found;
    }

    // The mean paired difference, the first model less the second.
    pair(a, b) {
      if (a < b) return inference.mirrored(this.pair(b, a));
      if (a === b) return { mean: 0, se: 0, skewness: 0, df: Infinity };
      const key = a * this.columns.length + b;
      if (!this.known.has(key)) {
        const [ours, theirs] = [this.columns[a], this.columns[b]];
        const size = Math.max(this.largest[a], this.largest[b]);
        for (let n = 0; n < ours.length; n++) this.difference[n] = ours[n] - theirs[n];
        this.known.set(key, inference.meanOfUsers(this.difference, this.weights, size));
      }
      return this.known.get(key);
    }

    counts(a, b) {
      return inference.signs(this.columns[a], this.columns[b], this.sign);
    }

    standings(models, other, adjusted) {
      const compared = models.map(model => [this.pair(model, other), this.counts(model, other)]);
      const [average, users] = adjusted(compared);
      return new Map(
        models.map((model, n) => {
          const [difference, counts] = compared[n];
          const isWorse = this.sign * difference.mean > 0;
          const [lo, hi] = inference.interval(difference, average[n].factor);
          const [low, high] = inference.shareInterval(counts, users[n].factor);
          const alike = counts.tied > 0 && !(counts.better + counts.worse);
          const word = verdict(average[n].p, inference.isZero(difference), isWorse);
          const majority = verdict(users[n].p, alike, counts.worse > counts.better);
          return [
            model,
            {
              difference,
              counts,
              average: { verdict: word, ...average[n], lo, hi },
              users: { verdict: majority, ...users[n], lo: low, hi: high },
            },
          ];
        }),
      );
    }

    byHolm(models, other) {
      return this.standings(models, other, compared => [
        inference.holm(compared.map(([difference]) => inference.pValue(difference))),
        inference.holm(compared.map(([, counts]) => inference.pOfSigns(counts))),
      ]);
    }

    // Every model against its leader.
    toBest() {
      this.best ??= this.againstLeaders();
      return this.best;
    }

    againstLeaders() {
      const found = new Map();
      for (const leader of new Set(this.leaders)) {
        const group = this.order.filter(model => this.leaders[model] === leader);
        if (leader < 0) for (const model of group) found.set(model, alone("unknown"));
        else for (const [model, one] of this.behind(leader, group)) found.set(model, one);
      }
      return this.columns.map((_, model) => found.get(model));
    }

    behind(leader, group) {
      const table = group.filter(model => this.eligible[model] && model !== leader);
      const ranked = table.filter(model => !inference.isZero(this.pair(model, leader)));
      const twins = ranked.map((model, place) =>
        ranked.slice(0, place).findIndex(other => inference.isZero(this.pair(model, other))),
      );
      const found = this.standings(ranked, leader, compared => [
        inference.behindLeader(
          compared.map(([difference]) => inference.pValue(difference)), twins, ranked.map(() => true),
        ),
        inference.behindLeader(
          compared.map(([, counts]) => inference.pOfSigns(counts)), twins,
          compared.map(([, counts]) => counts.worse > counts.better),
        ),
      ]);
      const others = group.filter(model => !this.eligible[model] && model !== leader);
      const same = table.filter(model => !ranked.includes(model));
      for (const models of [others, same])
        for (const [model, one] of this.byHolm(models, leader)) found.set(model, one);
      const isBest = this.anyBest && table.length && table.every(m => found.get(m).average.verdict === "worse");
      return found.set(leader, alone(isBest ? "best" : "leads"));
    }

    // Every model against a baseline; baseline and leader are compared only once.
    toBaseline(baseline) {
      const toLeader = this.toBest();
      const leader = this.leaders[baseline];
      const others = [...this.columns.keys()].filter(model => model !== baseline);
      const found = this.byHolm(others, baseline);
      if (leader === baseline)
        for (const model of others) {
          if (this.leaders[model] === leader) found.set(model, toLeader[model]);
        }
      else if (leader >= 0) found.set(leader, mirrored(toLeader[baseline]));
      const own = leader === baseline ? toLeader[baseline] : alone("identical");
      return this.columns.map((_, model) => found.get(model) ?? own);
    }

    // Groups of neighbours in the order of one time, no two of them significantly different.
    cliques(time) {
      const group = this.order.filter(n => this.times[n] === time && !Number.isNaN(this.means[n]));
      const pairs = group.flatMap((_, b) => [...Array(b).keys()].map(a => [a, b]));
      const adjusted = inference.holm(
        pairs.map(([a, b]) => inference.pValue(this.pair(group[b], group[a]))),
      );
      const differ = new Set(
        pairs.filter((_, n) => adjusted[n].p < ALPHA).map(([a, b]) => a * group.length + b),
      );
      const found = [];
      for (let first = 0, end = 0; first < group.length; first++) {
        let last = first;
        const fits = to => [...Array(to - first).keys()].every(
          n => !differ.has((first + n) * group.length + to),
        );
        while (last + 1 < group.length && fits(last + 1)) last++;
        if (last + 1 > end && last > first) found.push(group.slice(first, last + 1));
        end = Math.max(end, last + 1);
      }
      return found;
    }
  }

  return { Table, mirrored };
})();
