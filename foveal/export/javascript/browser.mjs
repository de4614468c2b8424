/**
 * Load an exported model in a browser.
 *
 *     import {load} from "foveal-runtime";
 *
 *     const model = await load("models/ice.export/");
 *     (await model.predict("reykjavík")).output;
 */

import {refused} from "./folder.mjs";
import {opened} from "./opening.mjs";

export {ExportedModelError} from "./errors.mjs";
export {Model} from "./model.mjs";

/**
 * Load an exported model.
 *
 * @param {string | URL | Map<string, Blob | Uint8Array>} folder address of the folder that `foveal export` wrote, or its
 *   files by name
 * @param {import("./opening.mjs").Options} [options]
 * @returns {Promise<import("./model.mjs").Model>} the model, ready to answer
 * @throws {import("./errors.mjs").ExportedModelError} The folder is damaged, or written by a newer version.
 */
export function load(folder, options = {}) {
  const files = folder instanceof Map ? inMemory(folder) : onServer(String(folder));
  return opened(files, {decode: decodedImage, ...options}, () => import("onnxruntime-web/wasm"));
}

function inMemory(contents) {
  const place = "the files";
  const read = async (name, most) => {
    const content = contents.get(name);
    if (content === undefined) return null;
    const size = content instanceof Blob ? content.size : content.length;
    if (size > most) throw refused(place, `${name} has ${size} bytes, expected ${most}`);
    return content instanceof Blob ? new Uint8Array(await content.arrayBuffer()) : content;
  };
  return {place, read};
}

function onServer(address) {
  const base = new URL(address.endsWith("/") ? address : `${address}/`, document.baseURI);
  const read = async (name, most) => {
    const response = await fetch(new URL(name, base));
    if (response.status === 404) return null;
    if (!response.ok) throw refused(address, `${name}: the server answers ${response.status}`);
    return limited(response.body, most, () => refused(address, `${name} has more bytes than expected: ${most}`));
  };
  return {place: address, read};
}

/** Read a stream into memory, but not more than `most` bytes. */
async function limited(stream, most, tooLarge) {
  const parts = [];
  let size = 0;
  const reader = stream.getReader();
  for (;;) {
    const {done, value} = await reader.read();
    if (done) break;
    size += value.length;
    if (size > most) {
      await reader.cancel();
      throw tooLarge();
    }
    parts.push(value);
  }
  const whole = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** Decode an image file with the decoders of the browser, upright and without color management. */
async function decodedImage(content) {
  const options = {colorSpaceConversion: "none", premultiplyAlpha: "none"};
  const bitmap = await createImageBitmap(new Blob([content]), options);
  const {width, height} = bitmap;
  const context = new OffscreenCanvas(width, height).getContext("2d", {willReadFrequently: true});
  context.drawImage(bitmap, 0, 0);
  bitmap.close();
  return {data: context.getImageData(0, 0, width, height).data, width, height, channels: 4};
}
