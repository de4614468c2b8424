/**
 * The folder of an exported model: `manifest.json` has the size and SHA-256 of every other file.
 *
 * Reading executes no code. Every size is compared with a limit before a file is read. Checksums detect corruption and
 * mixed-up files, not tampering: anyone with write access can replace the manifest.
 */

import {ExportedModelError} from "./errors.mjs";
import {sha256} from "./sha256.mjs";

export const MANIFEST = "manifest.json";
export const MODEL = "model.json";
export const VOCABULARY = "vocabulary.json";
export const SELF_TEST = "selftest.jsonl";
const GRAPH = "model.onnx";
const PLAIN = "model.plain";
const FORMAT = 1;
const MOST_MANIFEST = 2 ** 20;
const MOST_JSON = 64 * 2 ** 20;
const MOST_GRAPH = 2 ** 31 - 1;

/**
 * The files of a folder, on a disk, on a server or in memory.
 *
 * @typedef {object} Files
 * @property {string} place name of the folder in errors
 * @property {(name: string, most: number) => Promise<Uint8Array | null>} read
 *   Returns the content of a file, or null if there is none. Throws for a file of more than `most` bytes.
 */

/** A folder whose files are compared with the manifest when they are read. */
export class Folder {
  #files;
  #entries;

  /** @param {Files} files @param {Record<string, unknown>} entries sizes and checksums of the manifest */
  constructor(files, entries) {
    this.#files = files;
    this.#entries = entries;
  }

  /**
   * Read the manifest.
   *
   * @param {Files} files
   * @returns {Promise<Folder>}
   * @throws {ExportedModelError} There is no manifest, it is damaged, or it was written by a newer version.
   */
  static async open(files) {
    const content = await files.read(MANIFEST, MOST_MANIFEST);
    if (content === null) {
      throw new ExportedModelError(
        `${files.place}: expected an exported model, but the folder has no ${MANIFEST}. Make one with ` +
          "foveal export RUN --out FOLDER.",
      );
    }
    const data = jsonOf(files.place, MANIFEST, content);
    const format = isObject(data) ? data.format : undefined;
    if (!Number.isInteger(format) || format < 1) throw refused(files.place, `${MANIFEST} has no format`);
    if (format > FORMAT) {
      throw new ExportedModelError(
        `${files.place}: written in format ${format} by foveal ${String(data.foveal).slice(0, 20)}, this runtime ` +
          `reads formats up to ${FORMAT}. Install a newer foveal-runtime.`,
      );
    }
    if (!isObject(data.files)) throw refused(files.place, `${MANIFEST} lists no files`);
    return new Folder(files, data.files);
  }

  /** Name of the folder in errors. */
  get place() {
    return this.#files.place;
  }

  /** @param {string} name @returns {Promise<unknown>} the content of a JSON file */
  async json(name) {
    return jsonOf(this.place, name, await this.#verified(name, MOST_JSON));
  }

  /** @returns {Promise<Uint8Array>} the graph */
  graph() {
    return this.#verified(GRAPH, MOST_GRAPH);
  }

  /**
   * Read the file of the plain engine.
   *
   * @returns {Promise<Uint8Array>}
   * @throws {ExportedModelError} The model was exported without it, or it is damaged.
   */
  plain() {
    if (!Object.hasOwn(this.#entries, PLAIN)) {
      throw new ExportedModelError(
        `${this.place}: the engine "plain" needs ${PLAIN}, which the folder does not have. Export the model with ` +
          "foveal export RUN --out FOLDER --plain.",
      );
    }
    return this.#verified(PLAIN, MOST_GRAPH);
  }

  /** @returns {Promise<Record<string, unknown>[]>} the examples that were stored at export */
  async examples() {
    const content = textOf(this.place, SELF_TEST, await this.#verified(SELF_TEST, MOST_JSON));
    const lines = content.split("\n").filter(Boolean);
    return lines.map((line) => parsed(this.place, SELF_TEST, line));
  }

  async #verified(name, most) {
    const entry = Object.hasOwn(this.#entries, name) ? this.#entries[name] : undefined;
    if (!isObject(entry) || Object.keys(entry).sort().join() !== "sha256,size") {
      throw refused(this.place, `${MANIFEST} has no size and sha256 for ${name}`);
    }
    if (!Number.isInteger(entry.size) || entry.size < 0 || entry.size > most) {
      const got = JSON.stringify(entry.size).slice(0, 20);
      throw refused(this.place, `${name} has ${got} bytes, expected at most ${most}`);
    }
    const content = await this.#files.read(name, entry.size);
    if (content === null) throw refused(this.place, `${name} is missing or is not a file`);
    if (content.length !== entry.size) {
      throw refused(this.place, `${name} has ${content.length} bytes, expected ${entry.size}`);
    }
    if ((await sha256(content)) !== entry.sha256) {
      throw refused(this.place, `${name} has a wrong sha256 checksum`);
    }
    return content;
  }
}

/**
 * Return the error for a folder that cannot be used.
 *
 * @param {string} place
 * @param {string} why
 */
export function refused(place, why) {
  return new ExportedModelError(`${place}: ${why}. Restore the folder, or export the model again.`);
}

function jsonOf(place, name, content) {
  return parsed(place, name, textOf(place, name, content));
}

function textOf(place, name, content) {
  try {
    return new TextDecoder("utf-8", {fatal: true}).decode(content);
  } catch {
    throw refused(place, `${name} is not UTF-8`);
  }
}

function parsed(place, name, text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw refused(place, `${name} is not JSON: ${error.message.slice(0, 200)}`);
  }
}

function isObject(data) {
  return data !== null && typeof data === "object" && !Array.isArray(data);
}
