/** Answers of exported models for the tests, in Node.js and in a browser. */

import {load} from "foveal-runtime";

/**
 * Answer sources with every requested model, all at once and one by one.
 *
 * @param {string} root folder or address of the models
 * @param {{folder: string, engine: string, sources: object[], beamSize: number}[]} requests
 */
export async function answered(root, requests) {
  const found = [];
  for (const {folder, engine, sources, beamSize} of requests) {
    const model = await load(`${root}/${folder}`, {engine});
    const options = {nbest: beamSize, attention: true};
    const together = await model.predict(sources, options);
    const alone = [];
    for (const source of sources) alone.push(await model.predict(source, options));
    found.push({tested: await model.selfTest(), together, alone});
  }
  return found;
}
