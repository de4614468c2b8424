/** Settings of a search, and what the tasks share: inputs of the graph, padding and the candidates of an answer. */

import {ExportedModelError} from "../errors.mjs";
import {lengthLimit} from "./sizes.mjs";

const MOST_BEAM = 10_000;
const MOST_LENGTH = 1_000_000;
const MOST_RATIO = 10_000;
const SHOWN = 40; // characters of a text in an error

/**
 * @typedef {object} Search
 * @property {number} beamSize
 * @property {number} nbest
 * @property {number} lengthPenalty
 * @property {number | null} maxLength
 */

/**
 * Return the search of the settings in `model.json`.
 *
 * @param {import("../fields.mjs").Fields} settings
 * @returns {Search}
 */
export function searchOf(settings) {
  return {
    beamSize: settings.integer("beam_size", 1, MOST_BEAM),
    nbest: settings.integer("nbest", 1, MOST_BEAM),
    lengthPenalty: settings.number("length_penalty"),
    maxLength: settings.isNull("max_length") ? null : settings.integer("max_length", 1, MOST_LENGTH),
  };
}

/**
 * Return a search with some settings replaced.
 *
 * @param {Search} search the settings of the model
 * @param {Partial<Search>} given
 * @returns {Search}
 * @throws {ExportedModelError} A setting is out of range.
 */
export function searchWith(search, {beamSize, nbest, lengthPenalty, maxLength}) {
  const found = {
    beamSize: beamSize ?? Math.max(search.beamSize, nbest ?? 1),
    nbest: nbest ?? search.nbest,
    lengthPenalty: lengthPenalty ?? search.lengthPenalty,
    maxLength: maxLength ?? search.maxLength,
  };
  if (!(isWhole(found.nbest, found.beamSize) && isWhole(found.beamSize, MOST_BEAM))) {
    throw new ExportedModelError(
      `expected whole numbers 1 <= nbest <= beamSize <= ${MOST_BEAM}, got nbest=${found.nbest} and ` +
        `beamSize=${found.beamSize}. Set beamSize to ${Math.max(1, Math.trunc(found.nbest) || 1)}.`,
    );
  }
  if (!Number.isFinite(found.lengthPenalty)) {
    throw new ExportedModelError(
      `lengthPenalty: expected a finite number, got ${found.lengthPenalty}. Set it to 0 for none.`,
    );
  }
  if (found.maxLength !== null && !isWhole(found.maxLength, MOST_LENGTH)) {
    throw new ExportedModelError(
      `maxLength: expected a whole number from 1 to ${MOST_LENGTH}, got ${found.maxLength}. Omit it.`,
    );
  }
  return found;
}

/**
 * Read how long outputs may be.
 *
 * @param {import("../fields.mjs").Fields} settings
 * @returns {{ratio: number, slack: number}}
 */
export function lengthsOf(settings) {
  const [ratio, slack] = [settings.number("ratio"), settings.number("slack")];
  if (!(ratio >= 0 && ratio <= MOST_RATIO && slack >= 0 && slack <= MOST_LENGTH)) {
    throw new ExportedModelError(
      `lengths: expected a ratio from 0 to ${MOST_RATIO} and a slack from 0 to ${MOST_LENGTH}, got ${ratio} and ` +
        `${slack}. Export the model again.`,
    );
  }
  return {ratio, slack};
}

/**
 * Return the longest output of a source, with the end token.
 *
 * @param {number} numTokens of the source
 * @param {{ratio: number, slack: number}} lengths
 * @param {Search} search
 * @returns {number}
 */
export function limitOf(numTokens, lengths, search) {
  return search.maxLength === null ? lengthLimit(numTokens, lengths) : search.maxLength + 1;
}

/**
 * Return the inputs of a graph that control its search.
 *
 * @param {number[]} limits longest output of each item
 * @param {Search} search
 * @returns {Record<string, import("../engine.mjs").Tensor>}
 */
export function searchInputs(limits, search) {
  return {
    limits: {type: "int64", dims: [limits.length], data: limits},
    beam_size: {type: "int64", dims: [1], data: [search.beamSize]},
    length_penalty: {type: "float32", dims: [1], data: [search.lengthPenalty]},
  };
}

/**
 * Return token ids, padded with 0, and their numbers, as graphs of texts read them.
 *
 * @param {number[][]} rows
 * @param {number} size padded number of tokens
 * @returns {Record<string, import("../engine.mjs").Tensor>}
 */
export function padded(rows, size) {
  const data = new Int32Array(rows.length * size);
  rows.forEach((row, number) => data.set(row, number * size));
  return {
    tokens: {type: "int64", dims: [rows.length, size], data},
    lengths: {type: "int32", dims: [rows.length], data: rows.map((row) => row.length)},
  };
}

/**
 * Throw for a text with too many tokens.
 *
 * @param {string} text
 * @param {number} size number of its tokens
 * @param {number} most
 */
export function checkSize(text, size, most) {
  if (size <= most) return;
  const shown = JSON.stringify([...text.slice(0, 2 * SHOWN)].slice(0, SHOWN).join(""));
  throw new ExportedModelError(`a source may have at most ${most} tokens, got ${size}: ${shown}. Split it.`);
}

/**
 * Return the first candidates of a sorted list; a candidate with the score -Infinity does not exist.
 *
 * @param {string[]} outputs
 * @param {number[]} scores
 * @param {number[]} confidences
 * @param {number} nbest
 * @returns {{output: string, score: number, confidence: number}[]}
 */
export function ranked(outputs, scores, confidences, nbest) {
  const all = outputs.map((output, rank) => ({output, score: scores[rank], confidence: confidences[rank]}));
  const found = all.filter((each) => each.score > -Infinity).slice(0, nbest);
  if (!found.length) {
    throw new ExportedModelError(
      "the model gives no output a probability, expected at least one. Export the model again.",
    );
  }
  return found;
}

function isWhole(value, most) {
  return Number.isInteger(value) && value >= 1 && value <= most;
}
