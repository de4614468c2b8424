/** The types of a plain model file. Every size is compared with the bytes that are left before memory is allocated for it. */

import {ExportedModelError} from "../errors.mjs";

const MOST_STRING = 1_048_576;
const [FLOAT, HALF, INT8] = [0, 1, 2]; // storages of a matrix

/**
 * A matrix, row by row.
 *
 * @typedef {{data: Float32Array, rows: number, columns: number}} Matrix
 */

/** Reads values one after the other. */
export class Reader {
  #bytes;
  #view;
  #at = 0;

  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** @param {number} size @returns {Uint8Array} the next bytes */
  bytes(size) {
    const start = this.#skip(size);
    return this.#bytes.subarray(start, start + size);
  }

  /** @param {string} name @param {number} most @returns {number} an integer of one byte */
  small(name, most) {
    return this.#within(name, this.#view.getUint8(this.#skip(1)), 0, most);
  }

  /** @param {string} name @returns {boolean} */
  flag(name) {
    return this.small(name, 1) === 1;
  }

  /** @param {string} name @param {number} least @param {number} most @returns {number} */
  integer(name, least, most) {
    return this.#within(name, this.#view.getUint32(this.#skip(4), true), least, most);
  }

  /** @param {string} name @returns {number} a finite number of 4 bytes */
  float(name) {
    return this.#finite(name, this.#view.getFloat32(this.#skip(4), true));
  }

  /** @param {string} name @param {number} least @param {number} most @returns {number} a number of 8 bytes */
  double(name, least, most) {
    return this.#within(name, this.#view.getFloat64(this.#skip(8), true), least, most);
  }

  /** @param {string} name @returns {string} */
  text(name) {
    const content = this.bytes(this.integer(`the size of ${name}`, 0, MOST_STRING));
    try {
      return new TextDecoder("utf-8", {fatal: true, ignoreBOM: true}).decode(content);
    } catch {
      throw damaged(`${name} is not UTF-8`);
    }
  }

  /** @param {string} name @param {number} most @returns {string[]} a list of strings */
  texts(name, most = 2 ** 32 - 1) {
    const number = this.count(name, most, 4);
    return Array.from({length: number}, () => this.text(name));
  }

  /** @param {string} name @param {number} most @param {number} size least bytes of one @returns {number} */
  count(name, most, size) {
    const number = this.integer(`the number of ${name}`, 0, most);
    this.#fits(number * size);
    return number;
  }

  /** @param {string} name @param {number} size @returns {Float32Array} */
  vector(name, size) {
    this.integer(`the size of ${name}`, size, size);
    return this.#floats(name, size);
  }

  /** @param {string} name @param {number} rows @param {number} columns @returns {Matrix} */
  matrix(name, rows, columns) {
    const storage = this.small(`the storage of ${name}`, INT8);
    this.integer(`the rows of ${name}`, rows, rows);
    this.integer(`the columns of ${name}`, columns, columns);
    const size = rows * columns;
    if (storage === FLOAT) return {data: this.#floats(name, size), rows, columns};
    if (storage === HALF) return {data: this.#halves(name, size), rows, columns};
    const scales = this.#floats(name, rows);
    const values = new Int8Array(this.bytes(size).slice().buffer);
    return {data: Float32Array.from(values, (value, at) => value * scales[Math.floor(at / columns)]), rows, columns};
  }

  /** Throw if there are bytes left. */
  end() {
    const left = this.#bytes.length - this.#at;
    if (left) throw damaged(`${left} bytes follow the last field`);
  }

  #floats(name, size) {
    const found = new Float32Array(this.bytes(4 * size).slice().buffer);
    if (!found.every(Number.isFinite)) throw damaged(`${name} has a value that is not finite`);
    return found;
  }

  #halves(name, size) {
    const bits = new Uint16Array(this.bytes(2 * size).slice().buffer);
    const found = Float32Array.from(bits, numberOfHalf);
    if (!found.every(Number.isFinite)) throw damaged(`${name} has a value that is not finite`);
    return found;
  }

  #skip(size) {
    this.#fits(size);
    this.#at += size;
    return this.#at - size;
  }

  #fits(size) {
    const left = this.#bytes.length - this.#at;
    if (size > left) throw damaged(`${size} bytes are expected, and ${left} are left`);
  }

  #finite(name, value) {
    if (!Number.isFinite(value)) throw damaged(`${name} is ${value}`);
    return value;
  }

  #within(name, value, least, most) {
    if (value >= least && value <= most) return value;
    throw damaged(`${name} is ${value}, expected ${least === most ? least : `a number from ${least} to ${most}`}`);
  }
}

/**
 * Return the error for a file that cannot be used.
 *
 * @param {string} why
 */
export function damaged(why) {
  return new ExportedModelError(`the plain model file is damaged: ${why}. Export the model again.`);
}

function numberOfHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}
