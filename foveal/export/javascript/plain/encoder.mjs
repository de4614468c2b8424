/** The recurrent encoder: values of all positions, and a summary. */

import {joined, linear, rowOfTable, stepped, sum} from "./layers.mjs";

/**
 * Encode a source.
 *
 * @param {object} encoder the encoder of a plain model file
 * @param {number[]} ids of the source, at least one
 * @returns {{values: Float32Array[], summary: Float32Array}}
 */
export function encoded({cell, residual, skip, embedding, layers}, ids) {
  const bottom = ids.map((id) => rowOfTable(embedding, id));
  let below = bottom;
  let summary = below[0];
  layers.forEach((directions, number) => {
    const reads = number > 0 && skip ? below.map((vector, at) => joined(vector, bottom[at])) : below;
    const found = directions.map((weights, direction) => {
      const rows = direction === 0 ? reads : [...reads].reverse();
      let state = weights.first;
      const outputs = rows.map((row) => {
        state = stepped(cell, weights, linear(weights.input, row, weights.bias), state);
        return state.hidden;
      });
      return {outputs: direction === 0 ? outputs : outputs.reverse(), last: state.hidden};
    });
    summary = joined(...found.map(({last}) => last));
    const outputs = reads.map((_, at) => joined(...found.map((each) => each.outputs[at])));
    const adds = residual && below[0].length === outputs[0].length;
    below = adds ? outputs.map((vector, at) => sum(vector, below[at])) : outputs;
  });
  return {values: below, summary};
}
