"use strict";
// Paired differences over users, their intervals and tests: the closed forms of srs_eval.stats
// and srs_eval.comparison.standing. Tests compare the results with those of srs_eval.compare.
const inference = (() => {
  const ALPHA = 0.01;
  const ROUNDING = 1e-12;
  const FEWEST_EFFECTIVE = 2 - 1e-9;
  const NONE = { mean: NaN, se: NaN, skewness: NaN, df: NaN };

  function constant(mean, size, df) {
    return { mean: Math.abs(mean) > ROUNDING * size ? mean : 0, se: 0, skewness: 0, df };
  }

  // Estimate the weighted mean of values by the jackknife; size is the largest absolute score.
  function meanOfUsers(values, weights, size) {
    let [count, total, sum, largest] = [0, 0, 0, 0];
    for (let n = 0; n < values.length; n++) {
      if (!(weights[n] > 0) || Number.isNaN(values[n])) continue;
      count += 1;
      total += weights[n];
      sum += weights[n] * values[n];
      largest = Math.max(largest, weights[n]);
    }
    if (!(total > 0)) return NONE;
    const mean = sum / total;
    let [squaredShares, squares, cubes] = [0, 0, 0];
    for (let n = 0; n < values.length; n++) {
      if (!(weights[n] > 0) || Number.isNaN(values[n])) continue;
      const share = weights[n] / total;
      const move = (share * (values[n] - mean)) / (1 - share);
      squaredShares += share * share;
      squares += move * move;
      cubes += move * move * move;
    }
    const effective = 1 / squaredShares;
    if (count < 2 || effective < FEWEST_EFFECTIVE || largest === total) return { ...NONE, mean };
    const df = Math.max(effective - 1, 1);
    const se = Math.sqrt(((count - 1) / count) * squares);
    if (se <= ROUNDING * size) return constant(mean, size, df);
    return { mean, se, skewness: cubes / squares ** 1.5, df };
  }

  // Invert Hall's transformation of a t statistic of skewness a.
  function hall(t, a) {
    if (Math.abs(a) < 1e-6) return t - a * ((t * t) / 3 + 1 / 6);
    return (3 / a) * (Math.cbrt(1 + a * (t - a / 6)) - 1);
  }

  function interval(found, factor = 1) {
    if (Number.isNaN(found.se)) return [NaN, NaN];
    if (found.se === 0) return [found.mean, found.mean];
    const t = -special.stdtrit(found.df, ALPHA / factor / 2);
    return [
      found.mean - Math.max(t, hall(t, found.skewness)) * found.se,
      found.mean + Math.max(t, -hall(-t, found.skewness)) * found.se,
    ];
  }

  function pValue(found) {
    if (Number.isNaN(found.se)) return NaN;
    if (found.se === 0) return found.mean === 0 ? 1 : 0;
    const [z, a] = [found.mean / found.se, found.skewness];
    const h = z + a * ((z * z) / 3 + 1 / 6) + (a * a * z ** 3) / 27;
    if (z * h <= 0) return 1;
    return 2 * special.stdtr(found.df, -Math.min(Math.abs(z), Math.abs(h)));
  }

  const isZero = found => found.se === 0 && found.mean === 0;
  const mirrored = found => ({ ...found, mean: 0 - found.mean, skewness: -found.skewness });

  // Count the users for whom the first of two models has the lower loss, the higher, and the same.
  function signs(ours, theirs, sign) {
    let largest = 0;
    for (let n = 0; n < ours.length; n++) {
      if (Number.isNaN(ours[n] - theirs[n])) continue;
      largest = Math.max(largest, Math.abs(ours[n]), Math.abs(theirs[n]));
    }
    const found = { better: 0, worse: 0, tied: 0 };
    for (let n = 0; n < ours.length; n++) {
      const loss = sign * (ours[n] - theirs[n]);
      if (Number.isNaN(loss)) continue;
      if (loss > ROUNDING * largest) found.worse += 1;
      else if (-loss > ROUNDING * largest) found.better += 1;
      else found.tied += 1;
    }
    return found;
  }

  function pOfSigns({ better, worse, tied }) {
    const differ = better + worse;
    if (!differ) return tied ? 1 : NaN;
    return Math.min(1, 2 * special.bdtr(Math.min(better, worse), differ));
  }

  // Clopper and Pearson's interval of the share of better users.
  function shareInterval({ better, worse }, factor = 1) {
    if (!(better + worse)) return [NaN, NaN];
    const tail = ALPHA / factor / 2;
    return [
      better ? special.betaincinv(better, worse + 1, tail) : 0,
      worse ? 1 - special.betaincinv(worse, better + 1, tail) : 1,
    ];
  }

  function holm(given) {
    const order = [...given.keys()].filter(n => !Number.isNaN(given[n]));
    order.sort((a, b) => given[a] - given[b]);
    const found = given.map(() => ({ p: NaN, factor: Math.max(order.length, 1) }));
    let [before, rejected] = [0, 0];
    for (const [place, n] of order.entries()) {
      before = Math.max(before, given[n] * (order.length - place));
      found[n].p = Math.min(1, before);
      rejected += found[n].p < ALPHA;
    }
    for (const [place, n] of order.entries())
      found[n].factor = Math.max(order.length - Math.min(place, rejected), 1);
    return found;
  }

  // Adjust comparisons with the leader, which was selected on the same scores.
  function behindLeader(given, twins, mayDrop) {
    let ahead = [1];
    const found = [];
    for (const [place, p] of given.entries()) {
      if (twins[place] >= 0) {
        found.push({ ...found[twins[place]] });
        continue;
      }
      const count = ahead.filter(value => value >= ALPHA).length;
      const next = { p: NaN, factor: (count * (count + 1)) / 2 };
      if (!Number.isNaN(p)) {
        const levels = ahead.map((_, n) =>
          Math.max((((n + 1) * (n + 2)) / 2) * p, ahead[n + 1] ?? 0),
        );
        next.p = Math.min(1, ...levels);
      }
      found.push(next);
      const drops = mayDrop[place] && !Number.isNaN(p);
      ahead = [...ahead, drops ? next.p : 1].sort((a, b) => b - a);
    }
    return found;
  }

  return {
    ALPHA, meanOfUsers, interval, pValue, isZero, mirrored, signs, pOfSigns, shareInterval, holm,
    behindLeader,
  };
})();
