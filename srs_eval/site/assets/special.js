"use strict";
// Distribution functions of Student's t and of the binomial, from the incomplete beta function.
const special = (() => {
  const EPSILON = 1e-15;
  const TINY = 1e-300;
  const HALF_LOG_2_PI = 0.5 * Math.log(2 * Math.PI);
  const FROM = 10; // Stirling's series is exact from here

  function remainder(x) {
    const y = 1 / (x * x);
    const far = 1 / 1680 - y * (1 / 1188 - (y * 691) / 360360);
    return (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * far))) / x;
  }

  function logGamma(x) {
    let product = 1;
    for (; x < FROM; x++) product *= x;
    return (x - 0.5) * Math.log(x) - x + HALF_LOG_2_PI + remainder(x) - Math.log(product);
  }

  function logBeta(a, b) {
    if (a < b) [a, b] = [b, a];
    if (a < FROM) return logGamma(a) + logGamma(b) - logGamma(a + b);
    // the difference of two large logarithms of gamma, without cancellation
    const rise = b * Math.log(a) + (a + b - 0.5) * Math.log1p(b / a) - b;
    return logGamma(b) - rise - remainder(a + b) + remainder(a);
  }

  // Lentz's method for the continued fraction of the incomplete beta function.
  function fraction(a, b, x) {
    const away = value => (Math.abs(value) < TINY ? TINY : value);
    let c = 1;
    let d = 1 / away(1 - ((a + b) * x) / (a + 1));
    let found = d;
    for (let m = 1, change = 0; m < 1e5 && Math.abs(change - 1) > EPSILON; m++) {
      const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
      d = 1 / away(1 + even * d);
      c = away(1 + even / c);
      found *= c * d;
      const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
      d = 1 / away(1 + odd * d);
      c = away(1 + odd / c);
      change = c * d;
      found *= change;
    }
    return found;
  }

  // x and y add up to 1.
  function density(a, b, x, y) {
    const logX = x < 0.5 ? Math.log(x) : Math.log1p(-y);
    const logY = y < 0.5 ? Math.log(y) : Math.log1p(-x);
    return Math.exp(a * logX + b * logY - logBeta(a, b));
  }

  function betainc(a, b, x, y = 1 - x) {
    if (x <= 0) return 0;
    if (y <= 0) return 1;
    const scale = density(a, b, x, y);
    if (x < (a + 1) / (a + b + 2)) return (scale * fraction(a, b, x)) / a;
    return 1 - (scale * fraction(b, a, y)) / b;
  }

  // The root of an increasing function by Newton's method, within a bracket.
  function root(excess, slope, low, high) {
    let at = (low + high) / 2;
    for (let step = 0; step < 300; step++) {
      const value = excess(at);
      if (value > 0) high = at;
      else low = at;
      let next = at - value / slope(at);
      if (!(next > low && next < high)) next = (low + high) / 2;
      if (Math.abs(next - at) <= EPSILON * Math.abs(next)) return next;
      at = next;
    }
    return at;
  }

  function betaincinv(a, b, p) {
    const slope = x => density(a, b, x, 1 - x) / (x * (1 - x));
    return root(x => betainc(a, b, x) - p, slope, 0, 1);
  }

  // P(T <= t) with df degrees of freedom.
  function stdtr(df, t) {
    const square = t * t;
    const tail = 0.5 * betainc(df / 2, 0.5, df / (df + square), square / (df + square));
    return t < 0 ? tail : 1 - tail;
  }

  // The quantile of p < 1/2.
  function stdtrit(df, p) {
    const scale = -logBeta(df / 2, 0.5) - 0.5 * Math.log(df);
    const slope = t => Math.exp(scale - ((df + 1) / 2) * Math.log1p((t * t) / df));
    let low = -1;
    while (stdtr(df, low) > p) low *= 2;
    return root(t => stdtr(df, t) - p, slope, low, 0);
  }

  // P(at most k of n) with probability 1/2 each.
  const bdtr = (k, n) => betainc(n - k, k + 1, 0.5);

  return { betainc, betaincinv, bdtr, stdtr, stdtrit };
})();
