/** Damaged folders and files for the tests: every one of them must load, or end in an ExportedModelError. */

import {createHash} from "node:crypto";

import {ExportedModelError, load} from "../../foveal/export/javascript/browser.mjs";

const MAGIC_SIZE = 12; // of a plain model file, before its checksum

/** Load damaged copies of a folder, given in base64, and count what happens. */
export async function loaded(files, target, number, repaired) {
  const whole = new Map(Object.entries(files).map(([name, content]) => [name, Buffer.from(content, "base64")]));
  const next = random(number);
  const counts = {refused: 0, answered: 0};
  for (let round = 0; round < number; round++) {
    const damaged = new Map(whole);
    damaged.set(target, changed(whole.get(target), next));
    if (repaired) repair(damaged, target);
    try {
      const model = await load(damaged, {engine: "plain"});
      const answer = await model.predict("bad", {maxLength: 4, attention: true});
      if (typeof answer.output !== "string") throw new Error("no text");
      counts.answered += 1;
    } catch (error) {
      if (!(error instanceof ExportedModelError)) throw error;
      counts.refused += 1;
    }
  }
  return counts;
}

function changed(content, next) {
  const found = Buffer.from(content);
  const kind = next() % 4;
  if (kind === 0) return found.subarray(0, next() % found.length);
  const area = kind === 1 ? Math.min(found.length, 600) : found.length; // the beginning has the settings
  for (let n = 1 + (next() % 4); n > 0; n--) found[next() % area] = next() % 256;
  if (kind === 2) {
    const [from, to] = [next() % found.length, next() % found.length];
    found.copy(found, to, from, from + 8);
  }
  return found;
}

/** Write the checksums of a damaged file, so that its parser is reached. */
function repair(files, target) {
  const content = files.get(target);
  const start = MAGIC_SIZE + 32;
  if (target === "model.plain" && content.length >= start) digest(content.subarray(start)).copy(content, MAGIC_SIZE);
  const manifest = JSON.parse(files.get("manifest.json"));
  manifest.files[target] = {size: content.length, sha256: digest(content).toString("hex")};
  files.set("manifest.json", Buffer.from(JSON.stringify(manifest)));
}

function digest(content) {
  return createHash("sha256").update(content).digest();
}

/** A generator of numbers below 2 ** 31 (Park and Miller). */
function random(seed) {
  let state = seed + 1;
  return () => (state = (state * 48_271) % 2_147_483_647);
}
