/**
 * Attentions that sum over the position that a step reads.
 *
 *     v[s] = tanh( U_value value_s + U_state s_t ),   p(w) = sum over s of predicted[s] softmax( W v[s] + b )[w]
 *     hard       predicted = softmax(scores)
 *     monotone   predicted[j] = sum over i <= j of filtered[i] softmax over j >= i of scores[j]
 *                filtered[s] is the position of the last step, given the token that followed it
 */

import {linear, logSoftmax, logSumExp, tanh} from "./layers.mjs";

const LEAST = 1.2e-38; // a probability that underflows counts as this, so every output can end

/**
 * Take a step.
 *
 * @param {object} decoder the decoder of a plain model file
 * @param {import("./decoder.mjs").Memory} memory
 * @param {object} given the `walk` of the step before, null at the first; the last `token`; `scores` of the positions; and the
 *   `query`, the part of every v that comes from the state
 * @returns {{logProbs: Float32Array, weights: Float32Array, walk: object | null}}
 */
export function latentStep(decoder, memory, {walk, token, scores, query}) {
  const emissions = memory.vectors.map((vector) => {
    const found = vector.map((value, at) => tanh(value + query[at]));
    return logSoftmax(linear(decoder.output, found, decoder.outputBias));
  });
  const isMonotone = decoder.attention === "latent_monotone";
  const predicted = isMonotone ? walked(walk, token, scores) : logSoftmax(scores);
  const probs = new Float64Array(decoder.numTokens);
  emissions.forEach((row, position) => {
    if (predicted[position] === -Infinity) return;
    const weight = Math.exp(predicted[position]);
    for (let at = 0; at < probs.length; at++) probs[at] += weight * Math.exp(row[at]);
  });
  return {
    logProbs: Float32Array.from(probs, (prob) => Math.log(Math.max(prob, LEAST))),
    weights: predicted.map(Math.exp),
    walk: isMonotone ? {predicted, emissions} : null,
  };
}

/** Return log p(position | tokens before) of a walk that never goes back. */
function walked(walk, token, scores) {
  const before =
    walk === null
      ? scores.map((_, position) => (position === 0 ? 0 : -Infinity))
      : logSoftmax(walk.predicted.map((logProb, position) => logProb + walk.emissions[position][token]));
  const later = new Float64Array(scores.length); // the log of the sum of exp(score) from each position on
  let ahead = -Infinity;
  for (let position = scores.length - 1; position >= 0; position--) {
    ahead = logSumExp([ahead, scores[position]]);
    later[position] = ahead;
  }
  let left = -Infinity; // the log of the sum of filtered / later up to each position
  return scores.map((score, position) => {
    left = logSumExp([left, before[position] - later[position]]);
    return score + left;
  });
}
