/**
 * Size classes, to which sources are padded, and the lengths of outputs.
 *
 *     sizes   8, 12, 16, 24, 32, 48, 64, 96, ...
 *
 * A floating-point sum depends on the order of its terms, and the order depends on the shapes of arrays. A source that is
 * padded to the same size in every batch therefore has the same answer in every batch, bit for bit.
 */

const LEAST = 8;
const MOST_POSITIONS = 20_000; // in a batch: its states fit into the memory of any machine
const STEP = 32; // pixels

/**
 * Return the size to which a text is padded: the smallest size class above its number of tokens.
 *
 * @param {number} size number of tokens
 * @returns {number}
 */
export function sizeClass(size) {
  let positions = LEAST;
  while (positions <= size) {
    const isPower = (positions & (positions - 1)) === 0;
    positions = isPower ? (positions * 3) / 2 : (positions * 4) / 3;
  }
  return positions;
}

/**
 * Return the indices of inputs in batches of one padded shape, the largest first.
 *
 * @param {readonly number[][]} shapes padded shape of each input
 * @param {number} most maximum number of inputs in a batch
 * @returns {number[][]}
 */
export function grouped(shapes, most) {
  const groups = new Map();
  shapes.forEach((shape, index) => {
    const group = groups.get(shape.join()) ?? {size: shape.reduce((a, b) => a * b, 1), rows: []};
    group.rows.push(index);
    groups.set(shape.join(), group);
  });
  const batches = [];
  for (const {size, rows} of [...groups.values()].sort((a, b) => b.size - a.size)) {
    const room = Math.max(1, Math.min(most, Math.floor(MOST_POSITIONS / size)));
    for (let start = 0; start < rows.length; start += room) batches.push(rows.slice(start, start + room));
  }
  return batches;
}

/**
 * Return the height or width to which an image is padded: a multiple of 32 pixels and of the cells of its grid, with room
 * for one more cell.
 *
 * @param {number} size in pixels
 * @param {number} cell height or width of a cell
 * @returns {number}
 */
export function paddedPixels(size, cell) {
  let step = STEP;
  while (step % cell) step += STEP;
  return Math.ceil((size + cell) / step) * step;
}

/**
 * Return the maximum length of an output, with the end token: a fifth more than in the training set.
 *
 * @param {number} source number of tokens of the source
 * @param {{ratio: number, slack: number}} lengths tokens of a target for each token of a source, and in addition
 * @returns {number}
 */
export function lengthLimit(source, {ratio, slack}) {
  return Math.trunc(1.2 * (ratio * source + slack)) + 2;
}
