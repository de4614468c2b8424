/** The plain engine: JavaScript without any package, with the inputs and outputs of the graph in `model.onnx`. */

import {ExportedModelError} from "../errors.mjs";
import {END} from "../text/vocabulary.mjs";
import {encoded} from "./encoder.mjs";
import {readPlain} from "./file.mjs";
import {searched} from "./search.mjs";

const MOST_LENGTH = 100_000;

/** A plain model that is ready to run. */
export class PlainEngine {
  /** @param {object} model a parsed plain model file */
  constructor(model) {
    this.model = model;
  }

  /**
   * Read a plain model file.
   *
   * @param {Uint8Array} content
   * @returns {Promise<PlainEngine>}
   * @throws {ExportedModelError} The file is damaged, or written by a newer version.
   */
  static async open(content) {
    return new PlainEngine(await readPlain(content));
  }

  /**
   * Search outputs for sources.
   *
   * @param {Record<string, import("../engine.mjs").Tensor>} inputs
   * @returns {Promise<Record<string, import("../engine.mjs").Tensor>>} the outputs by name
   */
  async run({tokens, lengths, limits, beam_size: beamSize, length_penalty: lengthPenalty}) {
    const [numItems, numPositions] = tokens.dims;
    const settings = {beamSize: beamSize.data[0], lengthPenalty: lengthPenalty.data[0]};
    const numSteps = Math.max(...limits.data);
    if (numSteps > MOST_LENGTH) {
      throw new ExportedModelError(
        `the output may have ${numSteps} tokens, expected at most ${MOST_LENGTH}. Set maxLength.`,
      );
    }
    const found = [];
    for (let item = 0; item < numItems; item++) {
      const start = item * numPositions;
      const ids = Array.from(tokens.data.slice(start, start + lengths.data[item]));
      const source = encoded(this.model.encoder, ids);
      found.push(searched(this.model.decoder, source, ids, {...settings, limit: limits.data[item]}));
    }
    return tensorsOf(found, {numCandidates: settings.beamSize, numPositions});
  }
}

/** Outputs in the form of the graph; missing candidates have the score -Infinity. */
function tensorsOf(found, {numCandidates, numPositions}) {
  const numItems = found.length;
  const numSteps = Math.max(1, ...found.flatMap((candidates) => candidates.map(({ids}) => ids.length)));
  const candidates = {type: "float32", dims: [numItems, numCandidates]};
  const steps = {dims: [numItems, numCandidates, numSteps]};
  const size = numItems * numCandidates;
  const outputs = {
    outputs: {...steps, type: "int64", data: new Float64Array(size * numSteps).fill(END)},
    log_probs: {...steps, type: "float32", data: new Float32Array(size * numSteps)},
    scores: {...candidates, data: new Float32Array(size).fill(-Infinity)},
    totals: {...candidates, data: new Float32Array(size).fill(-Infinity)},
  };
  found.forEach((all, item) => {
    all.forEach(({ids, logProbs, score}, rank) => {
      const row = item * numCandidates + rank;
      outputs.outputs.data.set(ids, row * numSteps);
      outputs.log_probs.data.set(logProbs, row * numSteps);
      outputs.scores.data[row] = score;
      outputs.totals.data[row] = logProbs.reduce((a, b) => a + b, 0);
    });
  });
  if (!found.some(([best]) => best?.weights.length)) return outputs;
  const data = new Float32Array(numItems * numSteps * numPositions);
  found.forEach(([best], item) => {
    best?.weights.forEach((row, step) => data.set(row, (item * numSteps + step) * numPositions));
  });
  return {...outputs, weights: {type: "float32", dims: [numItems, numSteps, numPositions], data}};
}
