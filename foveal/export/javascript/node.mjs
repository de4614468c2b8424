/**
 * Load an exported model in Node.js.
 *
 *     import {load} from "foveal-runtime";
 *
 *     const model = await load("ice.export");
 *     (await model.predict("reykjavík")).output;
 */

import {lstat, readFile} from "node:fs/promises";
import {join} from "node:path";

import {opened} from "./opening.mjs";
import {refused} from "./folder.mjs";

export {ExportedModelError} from "./errors.mjs";
export {Model} from "./model.mjs";

/**
 * Load an exported model.
 *
 * @param {string} folder the folder that `foveal export` wrote
 * @param {import("./opening.mjs").Options} [options]
 * @returns {Promise<import("./model.mjs").Model>} the model, ready to answer
 * @throws {import("./errors.mjs").ExportedModelError} The folder is damaged, or written by a newer version.
 */
export function load(folder, options = {}) {
  const read = async (name, most) => {
    const file = join(folder, name);
    const about = await lstat(file).catch(() => null);
    if (!about?.isFile()) return null;
    if (about.size > most) throw refused(folder, `${name} has ${about.size} bytes, expected ${most}`);
    return new Uint8Array(await readFile(file));
  };
  return opened({place: folder, read}, options, () => import("onnxruntime-web"));
}
