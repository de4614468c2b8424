/**
 * Subwords of a sentencepiece model: the segmentation with the highest sum of scores (unigram), or merges by score (BPE).
 *
 *     best[end] = max over pieces text[start:end] of best[start] + score(piece)
 *
 * The models of the library are trained without normalization and write unknown characters as bytes. References: Kudo
 * 2018 (unigram); Sennrich et al. 2016 (BPE).
 */

import {ExportedModelError} from "../errors.mjs";

const SPACE = "\u2581"; // the character that sentencepiece writes for a space
// Types of pieces, and algorithms, as sentencepiece numbers them.
const NORMAL = 1;
const UNKNOWN = 2;
const CONTROL = 3;
const USER_DEFINED = 4;
const BYTE = 6;
const UNIGRAM = 1;
const BPE = 2;
const UNKNOWN_PENALTY = 10; // below the lowest score
const UNKNOWN_SURFACE = " \u2047 ";
const BYTE_PIECE = /^<0x([0-9A-F]{2})>$/;

/** A trained sentencepiece model. */
export class Subwords {
  #scores = new Map(); // of the pieces that a text can contain
  #controls = new Set();
  #unknown = "<unk>";
  #lowest = Infinity;
  #longest = 1; // characters of a piece
  #isUnigram;
  #hasBytes = false;

  /** @param {string} model the file of sentencepiece in base64 */
  constructor(model) {
    const fields = messageOf(bytesOf(model));
    for (const piece of fields.get(1) ?? []) this.#add(messageOf(piece));
    const trainer = messageOf(fields.get(2)?.[0] ?? new Uint8Array());
    const algorithm = trainer.get(3)?.[0] ?? UNIGRAM;
    if (algorithm !== UNIGRAM && algorithm !== BPE) {
      throw refused(`its algorithm is ${algorithm}, expected unigram (1) or BPE (2)`);
    }
    this.#isUnigram = algorithm === UNIGRAM;
    const normalizer = messageOf(fields.get(3)?.[0] ?? new Uint8Array());
    const flags = [3, 4].map((field) => normalizer.get(field)?.[0] ?? 1); // dummy prefix, extra spaces: true by default
    if (normalizer.get(2)?.[0]?.length || flags.some((flag) => flag !== 0)) {
      throw refused("it normalizes texts, expected identity without a dummy prefix");
    }
    if (!this.#scores.size) throw refused("it has no pieces");
  }

  /** @param {string} text @returns {string[]} the pieces */
  encode(text) {
    const characters = [...text.replaceAll(" ", SPACE)];
    const found = this.#isUnigram ? this.#best(characters) : this.#merged(characters);
    if (!this.#hasBytes) return found;
    return found.flatMap((piece) => (this.#scores.has(piece) ? [piece] : bytePieces(piece)));
  }

  /** @param {string[]} pieces @returns {string} the text */
  decode(pieces) {
    let text = "";
    let bytes = [];
    for (const piece of [...pieces, ""]) {
      const byte = this.#hasBytes ? BYTE_PIECE.exec(piece) : null;
      if (byte) {
        bytes.push(Number.parseInt(byte[1], 16));
        continue;
      }
      text += textOfBytes(bytes);
      bytes = [];
      if (piece === this.#unknown) text += UNKNOWN_SURFACE;
      else if (!this.#controls.has(piece)) text += piece.replaceAll(SPACE, " ");
    }
    return text;
  }

  #add(piece) {
    const name = new TextDecoder().decode(piece.get(1)?.[0] ?? new Uint8Array());
    const score = piece.get(2)?.[0] ?? 0;
    const type = piece.get(3)?.[0] ?? NORMAL;
    if (type === USER_DEFINED) throw refused(`it has the user-defined piece ${JSON.stringify(name.slice(0, 40))}`);
    if (type === CONTROL) this.#controls.add(name);
    if (type === UNKNOWN) this.#unknown = name;
    if (type === BYTE) this.#hasBytes = true;
    if (type !== NORMAL || !name || !Number.isFinite(score)) return;
    this.#scores.set(name, score);
    this.#lowest = Math.min(this.#lowest, score);
    this.#longest = Math.max(this.#longest, [...name].length);
  }

  /** Viterbi; sums are in float32, as in sentencepiece, so equal sums stay equal. */
  #best(characters) {
    const size = characters.length;
    const unknown = Math.fround(this.#lowest - UNKNOWN_PENALTY);
    const best = new Float32Array(size + 1).fill(-Infinity);
    const starts = new Int32Array(size + 1).fill(-1);
    best[0] = 0;
    const consider = (start, end, score) => {
      const sum = Math.fround(best[start] + score);
      if (starts[end] >= 0 && !(sum > best[end])) return;
      [best[end], starts[end]] = [sum, start];
    };
    for (let start = 0; start < size; start++) {
      let piece = "";
      for (let end = start + 1; end <= Math.min(size, start + this.#longest); end++) {
        piece += characters[end - 1];
        const score = this.#scores.get(piece);
        if (score !== undefined) consider(start, end, score);
      }
      if (!this.#scores.has(characters[start])) consider(start, start + 1, unknown);
    }
    const found = [];
    for (let end = size; end > 0; end = starts[end]) found.push(characters.slice(starts[end], end).join(""));
    return found.reverse();
  }

  /** Merge the neighbors whose piece has the highest score, the first of several, until none are left. */
  #merged(characters) {
    const found = [...characters];
    for (;;) {
      let [place, highest] = [-1, -Infinity];
      for (let left = 0; left + 1 < found.length; left++) {
        const score = this.#scores.get(found[left] + found[left + 1]) ?? -Infinity;
        if (score > highest) [place, highest] = [left, score];
      }
      if (place < 0) return found;
      found.splice(place, 2, found[place] + found[place + 1]);
    }
  }
}

function bytePieces(text) {
  const name = (byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;
  return Array.from(new TextEncoder().encode(text), name);
}

/** Decode UTF-8; each byte that belongs to no character becomes U+FFFD. */
function textOfBytes(bytes) {
  const decoder = new TextDecoder("utf-8", {fatal: true, ignoreBOM: true});
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const lead = bytes[at];
    const size = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    try {
      text += decoder.decode(Uint8Array.from(bytes.slice(at, at + size)));
      at += size;
    } catch {
      text += "\ufffd";
      at += 1;
    }
  }
  return text;
}

function bytesOf(base64) {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    throw refused("it is not base64");
  }
}

/** Parse a message of Protocol Buffers: the values of every field. */
function messageOf(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const fields = new Map();
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let scale = 1; at < bytes.length; scale *= 128) {
      const byte = bytes[at++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
    throw refused("it ends in a number");
  };
  const skipped = (size) => {
    if (size > bytes.length - at) throw refused("it is too short");
    at += size;
    return at - size;
  };
  while (at < bytes.length) {
    const key = varint();
    const [field, kind] = [Math.floor(key / 8), key % 8];
    let value;
    if (kind === 0) value = varint();
    else if (kind === 1) value = view.getFloat64(skipped(8), true);
    else if (kind === 5) value = view.getFloat32(skipped(4), true);
    else if (kind === 2) {
      const size = varint();
      const start = skipped(size);
      value = bytes.subarray(start, start + size);
    } else throw refused(`it has a field of type ${kind}`);
    if (!fields.has(field)) fields.set(field, []);
    fields.get(field).push(value);
  }
  return fields;
}

function refused(why) {
  return new ExportedModelError(`the subword model cannot be read: ${why}. Export the model again.`);
}
