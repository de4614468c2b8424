/** Products, activations and recurrent cells. Weights are float32, sums are in double precision. */

/**
 * Return W x + b.
 *
 * @param {import("./reader.mjs").Matrix} matrix W
 * @param {Float32Array} vector x
 * @param {Float32Array | null} bias b
 * @returns {Float32Array}
 */
export function linear({data, rows, columns}, vector, bias = null) {
  const found = new Float32Array(rows);
  const even = columns - (columns % 4);
  for (let row = 0; row < rows; row++) {
    const start = row * columns;
    // Four sums do not wait for each other. Separate declarations are faster than a list of them.
    let a = bias === null ? 0 : bias[row];
    let b = 0;
    let c = 0;
    let d = 0;
    for (let at = 0; at < even; at += 4) {
      a += data[start + at] * vector[at];
      b += data[start + at + 1] * vector[at + 1];
      c += data[start + at + 2] * vector[at + 2];
      d += data[start + at + 3] * vector[at + 3];
    }
    for (let at = even; at < columns; at++) a += data[start + at] * vector[at];
    found[row] = a + b + (c + d);
  }
  return found;
}

/**
 * Return a row of a table.
 *
 * @param {import("./reader.mjs").Matrix} table
 * @param {number} row
 * @returns {Float32Array}
 */
export function rowOfTable({data, columns}, row) {
  return data.subarray(row * columns, (row + 1) * columns);
}

/** @param {Float32Array[]} vectors @returns {Float32Array} the vectors, one after the other */
export function joined(...vectors) {
  const found = new Float32Array(vectors.reduce((size, each) => size + each.length, 0));
  let at = 0;
  for (const each of vectors) {
    found.set(each, at);
    at += each.length;
  }
  return found;
}

/** @param {Float32Array} first @param {Float32Array} second @returns {Float32Array} the sum */
export function sum(first, second) {
  return first.map((value, at) => value + second[at]);
}

/** @param {Float32Array} first @param {Float32Array} second @returns {number} the inner product */
export function dot(first, second) {
  let total = 0;
  for (let at = 0; at < first.length; at++) total += first[at] * second[at];
  return total;
}

/** Faster than Math.tanh, and exact to 1e-16. */
export function tanh(x) {
  return 1 - 2 / (1 + Math.exp(2 * x));
}

/** @param {number} x @returns {number} */
export function sigmoid(x) {
  return 1 / (1 + Math.exp(-x));
}

/** @param {number} x @returns {number} log(1 + exp(x)) */
export function softplus(x) {
  return Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
}

/** @param {ArrayLike<number>} values @returns {number} the log of the sum of exponentials; -Infinity if all are */
export function logSumExp(values) {
  let highest = -Infinity;
  for (let at = 0; at < values.length; at++) if (values[at] > highest) highest = values[at];
  if (highest === -Infinity) return highest;
  let total = 0;
  for (let at = 0; at < values.length; at++) total += Math.exp(values[at] - highest);
  return highest + Math.log(total);
}

/** @param {Float32Array} scores @returns {Float32Array} log-probabilities */
export function logSoftmax(scores) {
  const norm = logSumExp(scores);
  return scores.map((score) => score - norm);
}

/**
 * The state of a recurrent layer; only an LSTM has a memory.
 *
 * @typedef {{hidden: Float32Array, memory?: Float32Array}} State
 */

/**
 * Take one step of a cell.
 *
 * @param {"lstm" | "gru" | "elman"} cell
 * @param {{state: import("./reader.mjs").Matrix, stateBias: Float32Array | null}} weights
 * @param {Float32Array} gates what the gates get from the input, with its bias
 * @param {State} before
 * @returns {State}
 */
export function stepped(cell, {state, stateBias}, gates, before) {
  const size = state.columns;
  const own = linear(state, before.hidden, stateBias);
  const hidden = new Float32Array(size);
  if (cell === "elman") return {hidden: hidden.map((_, at) => tanh(gates[at] + own[at]))};
  if (cell === "gru") {
    for (let at = 0; at < size; at++) {
      const reset = sigmoid(gates[at] + own[at]);
      const update = sigmoid(gates[at + size] + own[at + size]);
      const fresh = tanh(gates[at + 2 * size] + reset * own[at + 2 * size]);
      hidden[at] = (1 - update) * fresh + update * before.hidden[at];
    }
    return {hidden};
  }
  const memory = new Float32Array(size);
  for (let at = 0; at < size; at++) {
    const enter = sigmoid(gates[at] + own[at]);
    const keep = sigmoid(gates[at + size] + own[at + size]);
    const fresh = tanh(gates[at + 2 * size] + own[at + 2 * size]);
    const leave = sigmoid(gates[at + 3 * size] + own[at + 3 * size]);
    memory[at] = keep * before.memory[at] + enter * fresh;
    hidden[at] = leave * tanh(memory[at]);
  }
  return {hidden, memory};
}
