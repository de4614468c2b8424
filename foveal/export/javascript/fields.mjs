/** Settings from a file, with the type and the range of every field checked when it is read. */

import {ExportedModelError} from "./errors.mjs";

const SHOWN = 60; // characters of a value in an error

/** One JSON object. */
export class Fields {
  #place;
  #data;

  /**
   * @param {string} place name of the object in errors
   * @param {unknown} data the parsed object
   */
  constructor(place, data) {
    this.#place = place;
    if (data === null || typeof data !== "object" || Array.isArray(data)) this.#refuse(data, "an object");
    this.#data = data;
  }

  /** @param {string} name @returns {boolean} whether the field is missing or null */
  isNull(name) {
    return !Object.hasOwn(this.#data, name) || this.#data[name] === null;
  }

  /** @param {string} name @returns {Fields} an object inside this one */
  at(name) {
    return new Fields(`${this.#place}.${name}`, this.#get(name));
  }

  /** @param {string} name @returns {string} */
  text(name) {
    const found = this.#get(name);
    return typeof found === "string" ? found : this.#refuse(found, "a string", name);
  }

  /** @param {string} name @returns {boolean} */
  boolean(name) {
    const found = this.#get(name);
    return typeof found === "boolean" ? found : this.#refuse(found, "true or false", name);
  }

  /** @param {string} name @param {readonly string[]} names @returns {string} one of the names */
  one(name, names) {
    const found = this.#get(name);
    return names.includes(found) ? found : this.#refuse(found, `one of ${names.join(", ")}`, name);
  }

  /** @param {string} name @returns {number} a finite number */
  number(name) {
    const found = this.#get(name);
    return Number.isFinite(found) ? found : this.#refuse(found, "a finite number", name);
  }

  /** @param {string} name @param {number} least @param {number} most @returns {number} */
  integer(name, least, most) {
    const found = this.#get(name);
    if (Number.isInteger(found) && found >= least && found <= most) return found;
    return this.#refuse(found, `an integer from ${least} to ${most}`, name);
  }

  /** @param {string} name @returns {string[]} */
  texts(name) {
    const found = this.#get(name);
    if (Array.isArray(found) && found.every((each) => typeof each === "string")) return found;
    return this.#refuse(found, "a list of strings", name);
  }

  /** @param {string} name @param {number} size @returns {number[]} finite numbers */
  numbers(name, size) {
    const found = this.#get(name);
    if (Array.isArray(found) && found.length === size && found.every(Number.isFinite)) return found;
    return this.#refuse(found, `a list of ${size} numbers`, name);
  }

  /** @param {string} name @returns {Fields[]} the objects of a list that is not empty */
  list(name) {
    const found = this.#get(name);
    if (!Array.isArray(found) || !found.length) return this.#refuse(found, "a list with objects", name);
    return found.map((each, number) => new Fields(`${this.#place}.${name}[${number}]`, each));
  }

  /** @param {string} name @param {number} size @returns {number[][]} a square of finite numbers */
  square(name, size) {
    const found = this.#get(name);
    const isRow = (row) => Array.isArray(row) && row.length === size && row.every(Number.isFinite);
    if (Array.isArray(found) && found.length === size && found.every(isRow)) return found;
    return this.#refuse(found, `${size} lists of ${size} numbers`, name);
  }

  #get(name) {
    return Object.hasOwn(this.#data, name) ? this.#data[name] : undefined;
  }

  #refuse(found, expected, name = undefined) {
    const place = name === undefined ? this.#place : `${this.#place}.${name}`;
    const got = found === undefined ? "nothing" : JSON.stringify(found).slice(0, SHOWN);
    throw new ExportedModelError(`${place}: expected ${expected}, got ${got}. Export the model again.`);
  }
}
