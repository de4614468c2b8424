/**
 * Beam search for one source, with the rules of the graph in `model.onnx`.
 *
 * Axes: K hypotheses, W tokens of the vocabulary, S positions.
 */

import {largest} from "../tasks/ranking.mjs";
import {BEGIN, END, NUM_SPECIAL} from "../text/vocabulary.mjs";
import {decoderStep, started} from "./decoder.mjs";

/**
 * An output that has ended.
 *
 * @typedef {object} Ended
 * @property {number} score
 * @property {number[]} ids with the end token
 * @property {number[]} logProbs of the ids
 * @property {Float32Array[]} weights of the positions for each id; empty without attention
 */

/**
 * Search.
 *
 * @param {object} decoder the decoder of a plain model file
 * @param {{values: Float32Array[], summary: Float32Array}} source
 * @param {number[]} ids of the source
 * @param {{limit: number, beamSize: number, lengthPenalty: number}} settings `limit` is the longest output, with the end token
 * @returns {Ended[]} the best outputs, best first, at most `beamSize`
 */
export function searched(decoder, source, ids, {limit, beamSize, lengthPenalty}) {
  const {memory, first} = started(decoder, source, ids);
  const divisor = (length) => ((5 + length) / 6) ** lengthPenalty;
  let live = [{score: 0, token: BEGIN, state: first, path: null}];
  let pool = [];
  for (let length = 1; ; length++) {
    const steps = live.map(({state, token}) => decoderStep(decoder, memory, state, token));
    const next = length < limit ? continued(live, steps, beamSize) : [];
    const worst = next.length === beamSize ? next.at(-1).score : -Infinity;
    const ended = live.map(({score, path}, rank) => {
      const {logProbs, weights} = steps[rank];
      const ending = Math.fround(score + logProbs[END]);
      const counts = ending >= worst && ending > -Infinity;
      return {score: counts ? ending / divisor(length) : -Infinity, path: {before: path, id: END, logProb: logProbs[END], weights}};
    });
    const all = [...pool, ...ended.filter(({score}) => score > -Infinity)];
    pool = largest(all.map(({score}) => score), beamSize).map((at) => all[at]);
    const isFull = pool.length === beamSize;
    if (!next.length || (isFull && pool.at(-1).score >= next[0].score / divisor(limit))) break;
    live = next;
  }
  return pool.map(({score, path}) => ({score, ...traced(path)}));
}

/** Continue every hypothesis by its best tokens; of equal scores, the lower hypothesis and the lower token are first. */
function continued(live, steps, beamSize) {
  const numTokens = steps[0].logProbs.length;
  const scores = new Float32Array(live.length * numTokens).fill(-Infinity);
  live.forEach(({score}, rank) => {
    const {logProbs} = steps[rank];
    for (let token = NUM_SPECIAL; token < numTokens; token++) scores[rank * numTokens + token] = score + logProbs[token];
  });
  const chosen = largest(scores, beamSize).filter((at) => scores[at] > -Infinity);
  return chosen.map((at) => {
    const [rank, token] = [Math.floor(at / numTokens), at % numTokens];
    const {logProbs, weights, after} = steps[rank];
    const path = {before: live[rank].path, id: token, logProb: logProbs[token], weights};
    return {score: scores[at], token, state: after, path};
  });
}

function traced(path) {
  const steps = [];
  for (let at = path; at !== null; at = at.before) steps.push(at);
  steps.reverse();
  return {
    ids: steps.map(({id}) => id),
    logProbs: steps.map(({logProb}) => logProb),
    weights: steps.flatMap(({weights}) => (weights === null ? [] : [weights])),
  };
}
