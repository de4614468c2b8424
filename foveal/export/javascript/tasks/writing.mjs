/**
 * Answers of a search in the graph: candidates, token probabilities and attention.
 *
 * Axes: B items, K candidates, T output tokens, S positions.
 */

import {END} from "../text/vocabulary.mjs";
import {ranked} from "./search.mjs";

/**
 * How the ids of an output become its text, for one input.
 *
 * @typedef {object} Writing
 * @property {number} limit the longest output, with the end token
 * @property {string[]} places the label of each position
 * @property {(ids: number[]) => string[]} decode
 * @property {(tokens: string[]) => string} join
 */

/**
 * The answer to one input.
 *
 * @typedef {object} Answer
 * @property {string} output
 * @property {number} score the score that ranks answers
 * @property {number} confidence the calibrated probability that the output is right
 * @property {{output: string, score: number, confidence: number}[]} nbest best first, including the output
 * @property {number[]} tokenProbabilities of each token of the output
 * @property {{sources: string[], targets: string[], weights: number[][]} | null} attention a row for each target
 */

/**
 * Return the answer to one input.
 *
 * @param {Record<string, import("../engine.mjs").Tensor>} found `outputs` and `log_probs` (B, K, T), `scores` (B, K) and,
 *   with attention, `weights` (B, T, S)
 * @param {number} item
 * @param {number[]} confidences calibrated probabilities (K)
 * @param {Writing} writing
 * @param {number} nbest
 * @param {boolean} attention whether to return the attention
 * @returns {Answer}
 */
export function written(found, item, confidences, {limit, places, decode, join}, nbest, attention) {
  const [, numCandidates, numSteps] = found.outputs.dims;
  const scores = Array.from(rowOf(found.scores.data, item, numCandidates));
  const tokens = scores.slice(0, nbest).map((_, rank) => {
    const ids = Array.from(rowOf(found.outputs.data, item * numCandidates + rank, numSteps)).slice(0, limit - 1);
    return decode(ids.includes(END) ? ids.slice(0, ids.indexOf(END)) : ids);
  });
  const nbestOf = ranked(tokens.map(join), scores, confidences, nbest);
  const [best] = tokens;
  const logProbs = rowOf(found.log_probs.data, item * numCandidates, numSteps).slice(0, best.length);
  let read = null;
  if (attention && found.weights !== undefined) {
    const numPositions = found.weights.dims[2];
    const weights = best.map((_, step) =>
      Array.from(rowOf(found.weights.data, item * numSteps + step, numPositions)).slice(0, places.length),
    );
    read = {sources: places, targets: best, weights};
  }
  return {...nbestOf[0], nbest: nbestOf, tokenProbabilities: Array.from(logProbs, Math.exp), attention: read};
}

/**
 * Return a row of an array.
 *
 * @template {Float32Array | Float64Array} Data
 * @param {Data} data
 * @param {number} number of the row
 * @param {number} size of a row
 * @returns {Data}
 */
export function rowOf(data, number, size) {
  return data.subarray(number * size, (number + 1) * size);
}
