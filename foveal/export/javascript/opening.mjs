/** Open a folder with one of the engines. */

import {OnnxEngine} from "./engine.mjs";
import {ExportedModelError} from "./errors.mjs";
import {Folder} from "./folder.mjs";
import {Model} from "./model.mjs";
import {PlainEngine} from "./plain/engine.mjs";

/**
 * How to load a model.
 *
 * @typedef {object} Options
 * @property {"onnx" | "plain"} [engine] "onnx" (the default) runs `model.onnx` with onnxruntime-web, "plain" runs
 *   `model.plain` with JavaScript only
 * @property {object} [ort] the module onnxruntime-web, if it was loaded in another way than by its name
 * @property {import("./tasks/captions.mjs").Decode} [decode] reads image files
 */

/**
 * Load the model of a folder.
 *
 * @param {import("./folder.mjs").Files} files
 * @param {Options} options
 * @param {() => Promise<object>} importOrt
 * @returns {Promise<Model>}
 */
export async function opened(files, {engine = "onnx", ort, decode}, importOrt) {
  const folder = await Folder.open(files);
  if (engine === "plain") return Model.open(folder, await PlainEngine.open(await folder.plain()), decode);
  if (engine !== "onnx") {
    throw new ExportedModelError(`engine: expected "onnx" or "plain", got ${JSON.stringify(engine)}. Omit it.`);
  }
  const graph = await folder.graph();
  const runtime = ort ?? (await importOrt().catch(missing));
  return Model.open(folder, await OnnxEngine.open(runtime, graph), decode);
}

function missing(error) {
  throw new ExportedModelError(
    `answering needs the package onnxruntime-web, which cannot be imported: ${String(error.message).slice(0, 200)}. ` +
      "Install it: npm install onnxruntime-web, or load it yourself and pass it as {ort}.",
  );
}
