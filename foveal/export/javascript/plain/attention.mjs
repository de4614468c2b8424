/**
 * Scores of positions, and the weights that they become. Axes: S positions.
 */

import {dot, linear, sigmoid, softplus, tanh} from "./layers.mjs";

/**
 * Return the keys of values, which are computed once for each source.
 *
 * @param {object} decoder the decoder of a plain model file
 * @param {Float32Array[]} values
 * @returns {Float32Array[]}
 */
export function keysOf({scorer, scoring}, values) {
  if (scorer === "dot") return values.map((value) => value.map((each) => each * scoring.scale));
  return values.map((value) => linear(scoring.key, value, scorer === "additive" ? scoring.bias : null));
}

/**
 * Return the scores of positions.
 *
 * @param {object} decoder the decoder of a plain model file
 * @param {Float32Array} query
 * @param {Float32Array[]} keys
 * @returns {Float32Array} (S)
 */
export function scoresOf({scorer, scoring}, query, keys) {
  if (scorer === "dot" || scorer === "bilinear") return Float32Array.from(keys, (key) => dot(query, key));
  const projected = linear(scoring.query, query);
  if (scorer === "linear") return Float32Array.from(keys, ([key]) => projected[0] + key);
  const combine = scoring.combine.data;
  return Float32Array.from(keys, (key) => {
    let score = 0;
    for (let at = 0; at < key.length; at++) score += combine[at] * tanh(projected[at] + key[at]);
    return score;
  });
}

/**
 * Return the weights of positions.
 *
 * @param {object} decoder the decoder of a plain model file
 * @param {Float32Array} scores (S)
 * @returns {Float32Array} (S)
 */
export function weightsOfScores({attention, chain}, scores) {
  if (attention === "sigmoid") return scores.map(sigmoid);
  if (attention === "segment") return segments(scores, chain);
  const highest = scores.reduce((a, b) => Math.max(a, b));
  if (attention === "hard") {
    const best = scores.indexOf(highest);
    return scores.map((_, at) => (at === best ? 1 : 0));
  }
  const parts = scores.map((score) => Math.exp(score - highest));
  const total = parts.reduce((a, b) => a + b);
  return parts.map((part) => part / total);
}

/** Return p(position is read) in a chain of the states skip and read. */
function segments(scores, {t00, t01, t10, t11, total}) {
  const follow = (x, one, both, none, only) =>
    softplus(x + (both - one)) - softplus(x + (only - none)) + (one - none);
  const last = scores.length - 1;
  const [left, right] = [new Float32Array(scores.length), new Float32Array(scores.length)];
  for (let at = 0; at < last; at++) left[at + 1] = follow(left[at] + scores[at], t01, t11, t00, t10);
  for (let at = last; at > 0; at--) right[at - 1] = follow(right[at] + scores[at], t10, t11, t00, t01);
  const weights = scores.map((score, at) => sigmoid(score + left[at] + right[at]));
  if (total === 0) return weights;
  const all = weights.reduce((a, b) => a + b);
  return weights.map((weight) => (weight * total) / all);
}
