/**
 * Tokens and their ids.
 *
 *     0 padding    1 unknown    2 begin    3 end    4, 5, ... the tokens
 *     then, for models that copy, the first different unseen tokens of the source, in order
 */

export const UNKNOWN = 1;
export const BEGIN = 2;
export const END = 3;
export const NUM_SPECIAL = 4;
const UNKNOWN_TEXT = "\ufffd";

/**
 * Give each token an id, from 4 on.
 *
 * @param {readonly string[]} tokens
 * @returns {Map<string, number>}
 */
export function numbered(tokens) {
  return new Map(tokens.map((token, number) => [token, number + NUM_SPECIAL]));
}

/**
 * Convert ids to tokens, up to the first end token. Padding and begin tokens are skipped.
 *
 * @param {Iterable<number>} ids for example the output of a decoder
 * @param {readonly string[]} tokens of the vocabulary, from id 4 on
 * @param {ReadonlyMap<string, number>} slots ids of the unseen tokens of the source; an empty slot is unknown
 * @returns {string[]} the tokens; an unknown token is U+FFFD
 */
export function tokensOf(ids, tokens, slots = new Map()) {
  const copied = new Map(Array.from(slots, ([token, id]) => [id, token]));
  const found = [];
  for (const id of ids) {
    if (id === END) break;
    if (copied.has(id)) found.push(copied.get(id));
    else if (id >= NUM_SPECIAL) found.push(tokens[id - NUM_SPECIAL] ?? UNKNOWN_TEXT);
    else if (id === UNKNOWN) found.push(UNKNOWN_TEXT);
  }
  return found;
}

/**
 * Give an id to each of the first different unseen tokens of a source.
 *
 * @param {readonly string[]} source
 * @param {ReadonlyMap<string, number>} known
 * @param {number} first id of the first slot
 * @param {number} numSlots
 * @returns {Map<string, number>}
 */
export function unseenSlots(source, known, first, numSlots) {
  const unseen = [...new Set(source.filter((token) => !known.has(token)))].slice(0, numSlots);
  return new Map(unseen.map((token, number) => [token, first + number]));
}
