/**
 * One step of a decoder for one hypothesis. Axes: S positions, W tokens of the vocabulary.
 */

import {UNKNOWN} from "../text/vocabulary.mjs";
import {keysOf, scoresOf, weightsOfScores} from "./attention.mjs";
import {joined, linear, logSoftmax, rowOfTable, softplus, stepped, sum, tanh} from "./layers.mjs";
import {latentStep} from "./latent.mjs";

/**
 * What a step needs to know of the source.
 *
 * @typedef {object} Memory
 * @property {Float32Array[]} values of the positions
 * @property {Float32Array[]} keys
 * @property {Float32Array[]} vectors the part of the vector before the output layer that comes from each value
 * @property {Float32Array} summary
 * @property {Float32Array | null} summaryGates the part of the gates that comes from the summary
 * @property {number[]} copies the token that each position can copy
 */

/**
 * The state of a hypothesis; it is never changed, so hypotheses share it.
 *
 * @typedef {object} Hypothesis
 * @property {import("./layers.mjs").State[]} layers
 * @property {Float32Array} fed the vector of the last step
 * @property {object | null} walk what a monotone attention remembers
 */

/**
 * Prepare a source.
 *
 * @param {object} decoder the decoder of a plain model file
 * @param {{values: Float32Array[], summary: Float32Array}} source
 * @param {number[]} ids of the source
 * @returns {{memory: Memory, first: Hypothesis}}
 */
export function started(decoder, {values, summary}, ids) {
  const attends = decoder.attention !== "none";
  const memory = {
    values,
    keys: attends ? keysOf(decoder, values) : [],
    vectors: decoder.ofValue === null ? [] : values.map((value) => linear(decoder.ofValue, value)),
    summary,
    summaryGates: decoder.ofSummary === null ? null : linear(decoder.ofSummary, summary),
    copies: ids.map((id) => (id < decoder.numTokens ? id : UNKNOWN)),
  };
  const layers = decoder.first.map((parts) => ({
    hidden: firstVector(parts.hidden, summary, tanh),
    memory: parts.memory === undefined ? undefined : firstVector(parts.memory, summary, (value) => value),
  }));
  return {memory, first: {layers, fed: new Float32Array(decoder.vectorSize), walk: null}};
}

/**
 * Take a step after a token.
 *
 * @param {object} decoder the decoder of a plain model file
 * @param {Memory} memory
 * @param {Hypothesis} before
 * @param {number} token
 * @returns {{logProbs: Float32Array, weights: Float32Array | null, after: Hypothesis}} log-probabilities (W), and weights of the
 *   positions (S)
 */
export function decoderStep(decoder, memory, before, token) {
  if (decoder.before) return attendedBefore(decoder, memory, before, token);
  const {output, layers} = advanced(decoder, memory, before, token, decoder.feeding ? before.fed : null);
  const after = {layers, fed: before.fed, walk: null};
  if (decoder.attention === "none") return {logProbs: predicted(decoder, output), weights: null, after};
  const scores = scoresOf(decoder, output, memory.keys);
  const query = linear(decoder.ofHidden, output);
  if (decoder.attention.startsWith("latent")) {
    const {logProbs, weights, walk} = latentStep(decoder, memory, {walk: before.walk, token, scores, query});
    return {logProbs, weights, after: {...after, walk}};
  }
  const weights = weightsOfScores(decoder, scores);
  const vector = sum(query, weightedSum(weights, memory.vectors)).map(tanh);
  const logProbs = mixed(decoder, memory, vector, weights);
  return {logProbs, weights, after: {...after, fed: vector}};
}

/** Attend with the previous state, then advance. */
function attendedBefore(decoder, memory, before, token) {
  const weights = weightsOfScores(decoder, scoresOf(decoder, before.layers.at(-1).hidden, memory.keys));
  const context = weightedSum(weights, memory.values);
  const {output, layers} = advanced(decoder, memory, before, token, context);
  const vector = decoder.deep ? deepVector(decoder, output, token, context) : output;
  return {logProbs: mixed(decoder, memory, vector, weights), weights, after: {...before, layers}};
}

/** Advance the stack by one token; `context` is null if the stack reads none. */
function advanced(decoder, memory, before, token, context) {
  const {cell, residual, skip} = decoder;
  let gates =
    decoder.tokenGates === null
      ? linear(decoder.tokenWeights.weight, rowOfTable(decoder.embedding, token), decoder.tokenWeights.bias)
      : rowOfTable(decoder.tokenGates, token);
  if (memory.summaryGates !== null) gates = sum(gates, memory.summaryGates);
  if (context !== null) gates = sum(gates, linear(decoder.ofContext, context));
  const inputs = residual || (skip && decoder.numLayers > 1) ? stackInputs(decoder, memory, token, context) : null;
  const layers = [];
  let below = inputs;
  decoder.layers.forEach((weights, number) => {
    if (number > 0) gates = linear(weights.input, skip ? joined(below, inputs) : below, weights.bias);
    const state = stepped(cell, weights, gates, before.layers[number]);
    layers.push(state);
    const adds = residual && below.length === state.hidden.length;
    below = adds ? sum(below, state.hidden) : state.hidden;
  });
  return {output: below, layers};
}

function stackInputs(decoder, memory, token, context) {
  const parts = [rowOfTable(decoder.embedding, token)];
  if (memory.summaryGates !== null) parts.push(memory.summary);
  if (context !== null) parts.push(context);
  return joined(...parts);
}

function deepVector({deepWeights, embedding, vectorSize}, output, token, context) {
  const units = linear(deepWeights.weight, joined(output, rowOfTable(embedding, token), context), deepWeights.bias);
  return Float32Array.from({length: vectorSize}, (_, at) => Math.max(units[2 * at], units[2 * at + 1]));
}

function predicted({output, outputBias}, vector) {
  return logSoftmax(linear(output, vector, outputBias));
}

/** Log-probabilities of all tokens, generated or copied. */
function mixed(decoder, {copies}, vector, weights) {
  const logProbs = predicted(decoder, vector);
  if (decoder.gate === null) return logProbs;
  const gate = linear(decoder.gate.weight, vector)[0] + decoder.gate.bias;
  const copied = new Float32Array(decoder.numTokens);
  copies.forEach((token, at) => (copied[token] += weights[at]));
  const [ofGenerated, ofCopied] = [softplus(-gate), softplus(gate)];
  return logProbs.map((logProb, token) =>
    Math.log(Math.exp(logProb - ofGenerated) + Math.exp(Math.log(copied[token]) - ofCopied)),
  );
}

function weightedSum(weights, vectors) {
  const found = new Float32Array(vectors[0].length);
  vectors.forEach((vector, at) => {
    const weight = weights[at];
    if (weight !== 0) for (let n = 0; n < found.length; n++) found[n] += weight * vector[n];
  });
  return found;
}

function firstVector({weight, bias, vector}, summary, activation) {
  return vector ?? linear(weight, summary, bias).map(activation);
}
