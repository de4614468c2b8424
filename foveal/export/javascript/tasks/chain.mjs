/**
 * The best taggings of a sentence under a chain of tags, and the probability of each tag.
 *
 *     score(y) = start[y_1] + sum_t unary[t, y_t] + sum_t transitions[y_t, y_{t+1}] + end[y_T]
 *     log p(y) = score(y) - log Z
 *
 * Axes: T words, K tags, k taggings. References: Viterbi 1967; Rabiner 1989 (forward-backward).
 */

import {largest} from "./ranking.mjs";

/**
 * The best taggings of a sentence, best first; a tagging with the log-probability -Infinity does not exist.
 *
 * @typedef {object} Taggings
 * @property {number[][]} tags
 * @property {number[]} logProbs
 * @property {number[]} probabilities of the tags of the best tagging
 */

/** Scores of taggings. */
export class Chain {
  #numTags;
  #transitions;
  #start;
  #end;

  /** @param {import("../fields.mjs").Fields | null} scores null for independent tags @param {number} numTags */
  constructor(scores, numTags) {
    const vector = (name) =>
      scores === null || scores.isNull(name) ? new Array(numTags).fill(0) : scores.numbers(name, numTags);
    this.#numTags = numTags;
    this.#start = vector("start");
    this.#end = vector("end");
    this.#transitions =
      scores === null || scores.isNull("transitions")
        ? Array.from({length: numTags}, () => new Array(numTags).fill(0))
        : scores.square("transitions", numTags);
  }

  /**
   * Find the best taggings of a sentence.
   *
   * @param {ArrayLike<number>} unary scores of the tags of each word (T, K)
   * @param {number} numWords a sentence without words has one tagging
   * @param {number} k number of taggings
   * @returns {Taggings}
   */
  best(unary, numWords, k) {
    if (numWords === 0) return {tags: [[]], logProbs: [0], probabilities: []};
    const scores = this.#scores(unary, numWords);
    const {tags, totals} = this.#search(scores, k);
    const {logZ, marginals} = this.#marginals(scores);
    return {
      tags,
      logProbs: totals.map((total) => total - logZ),
      probabilities: tags[0].map((tag, word) => marginals[word][tag]),
    };
  }

  /** Scores of each word in double precision, with those of the ends. */
  #scores(unary, numWords) {
    const size = this.#numTags;
    const rows = Array.from({length: numWords}, (_, word) =>
      Float64Array.from({length: size}, (_, tag) => unary[word * size + tag]),
    );
    for (let tag = 0; tag < size; tag++) {
      rows[0][tag] += this.#start[tag];
      rows[numWords - 1][tag] += this.#end[tag];
    }
    return rows;
  }

  #search(scores, k) {
    const size = this.#numTags;
    // The k best taggings of the words so far that end in each tag, in a table: tag * k + rank.
    let table = new Float64Array(size * k).fill(-Infinity);
    for (let tag = 0; tag < size; tag++) table[tag * k] = scores[0][tag];
    const pointers = [];
    const ways = new Float64Array(size * k);
    for (const row of scores.slice(1)) {
      const next = new Float64Array(size * k).fill(-Infinity);
      const pointer = new Int32Array(size * k);
      for (let tag = 0; tag < size; tag++) {
        for (let entry = 0; entry < ways.length; entry++) {
          ways[entry] = table[entry] + (this.#transitions[Math.floor(entry / k)][tag] + row[tag]);
        }
        largest(ways, k).forEach((entry, rank) => {
          next[tag * k + rank] = ways[entry];
          pointer[tag * k + rank] = entry;
        });
      }
      pointers.push(pointer);
      table = next;
    }
    const ends = largest(table, k);
    const tags = ends.map((end) => {
      const found = [Math.floor(end / k)];
      let entry = end;
      for (const pointer of [...pointers].reverse()) {
        entry = pointer[entry];
        found.push(Math.floor(entry / k));
      }
      return found.reverse();
    });
    return {tags, totals: ends.map((end) => table[end])};
  }

  #marginals(scores) {
    const size = this.#numTags;
    const tags = Array.from({length: size}, (_, tag) => tag);
    const ahead = [scores[0]];
    for (let word = 1; word < scores.length; word++) {
      const before = ahead[word - 1];
      const sum = (tag) => logSum(tags.map((from) => before[from] + this.#transitions[from][tag]));
      ahead.push(Float64Array.from(tags, (tag) => sum(tag) + scores[word][tag]));
    }
    const back = [new Float64Array(size)];
    for (let word = scores.length - 2; word >= 0; word--) {
      const [after] = back;
      const sum = (tag) =>
        logSum(tags.map((to) => scores[word + 1][to] + after[to] + this.#transitions[tag][to]));
      back.unshift(Float64Array.from(tags, sum));
    }
    const logZ = logSum(ahead.at(-1));
    const marginals = ahead.map((row, word) => row.map((value, tag) => Math.exp(value + back[word][tag] - logZ)));
    return {logZ, marginals};
  }
}

/** The log-sum-exp of scores, of which at least one is finite. */
function logSum(scores) {
  const highest = scores.reduce((a, b) => Math.max(a, b));
  return highest + Math.log(scores.reduce((sum, score) => sum + Math.exp(score - highest), 0));
}
