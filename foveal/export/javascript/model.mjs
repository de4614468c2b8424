/** A loaded model answers texts and images, in batches of one padded shape. */

import {ExportedModelError} from "./errors.mjs";
import {Fields} from "./fields.mjs";
import {MODEL, VOCABULARY} from "./folder.mjs";
import {Captioner} from "./tasks/captions.mjs";
import {Classifier, Tagger} from "./tasks/labels.mjs";
import {searchWith} from "./tasks/search.mjs";
import {grouped} from "./tasks/sizes.mjs";
import {Transducer} from "./tasks/transduction.mjs";

const BATCH_SIZE = 256;
const AT_ONCE = 1024; // inputs in memory
const TASKS = {captioning: Captioner, classification: Classifier, tagging: Tagger, transduction: Transducer};

/**
 * One input: a text, a text with features, or an image.
 *
 * @typedef {string | {text: string, features?: string} | {image: import("./tasks/captions.mjs").Image}} Source
 */

/** An exported model; the answer to an input is the same in every batch. */
export class Model {
  #folder;
  #task;

  /**
   * @param {import("./folder.mjs").Folder} folder
   * @param {{search: import("./tasks/search.mjs").Search}} task
   * @param {Record<string, unknown>} settings content of `model.json`
   */
  constructor(folder, task, settings) {
    this.#folder = folder;
    this.#task = task;
    this.settings = settings;
  }

  /**
   * Load the model of a folder.
   *
   * @param {import("./folder.mjs").Folder} folder
   * @param {import("./engine.mjs").AnyEngine} engine
   * @param {import("./tasks/captions.mjs").Decode | undefined} decode reads images
   * @returns {Promise<Model>}
   * @throws {ExportedModelError} The folder is damaged, or written by a newer version.
   */
  static async open(folder, engine, decode) {
    const content = await folder.json(MODEL);
    const settings = new Fields(`${folder.place}/${MODEL}`, content);
    const vocabulary = new Fields(`${folder.place}/${VOCABULARY}`, await folder.json(VOCABULARY));
    const task = settings.text("task");
    if (!Object.hasOwn(TASKS, task)) {
      throw new ExportedModelError(
        `${folder.place}: this runtime cannot run the task ${JSON.stringify(task.slice(0, 40))}, expected one of ` +
          `${Object.keys(TASKS).join(", ")}. Install a newer foveal-runtime.`,
      );
    }
    return new Model(folder, new TASKS[task](settings, vocabulary, engine, decode), content);
  }

  /**
   * Answer one text or image, or each of several.
   *
   * @template {Source | Source[]} Input
   * @param {Input} sources
   * @param {object} [options]
   * @param {number} [options.beamSize] number of hypotheses, or of taggings; defaults to the setting of the model, or to
   *   `nbest` if it is larger
   * @param {number} [options.nbest] number of candidates of each answer
   * @param {number} [options.lengthPenalty] larger values favor longer outputs
   * @param {number} [options.maxLength] maximum number of output tokens; follows from the length of the source by default
   * @param {boolean} [options.attention] whether to return the attention
   * @param {number} [options.batchSize] number of inputs in a run of the graph
   * @returns {Promise<Input extends Source[] ? import("./tasks/writing.mjs").Answer[] : import("./tasks/writing.mjs").Answer>}
   * @throws {ExportedModelError} A setting is out of range, a text is too long, or an image cannot be read.
   */
  async predict(sources, {attention = false, batchSize = BATCH_SIZE, ...given} = {}) {
    const search = searchWith(this.#task.search, given);
    if (!Number.isInteger(batchSize) || batchSize < 1) {
      throw new ExportedModelError(`batchSize: expected a whole number from 1, got ${batchSize}. Omit it.`);
    }
    const all = (Array.isArray(sources) ? sources : [sources]).map(sourceOf);
    const answers = [];
    for (let start = 0; start < all.length; start += AT_ONCE) {
      answers.push(...(await this.#answers(all.slice(start, start + AT_ONCE), search, batchSize, attention)));
    }
    return Array.isArray(sources) ? answers : answers[0];
  }

  /**
   * Return the token ids of a source, as the graph reads them; an image has none.
   *
   * @param {Source} source
   * @returns {Promise<number[]>}
   */
  async encoded(source) {
    return this.#task.encoded(await this.#task.prepared(sourceOf(source), this.#task.search));
  }

  /**
   * Answer the examples that were stored at export, and compare.
   *
   * @returns {Promise<number>} the number of examples
   * @throws {ExportedModelError} An answer differs: this machine or version computes something else.
   */
  async selfTest() {
    const lines = await this.#folder.examples();
    const answers = await this.predict(lines.map(({text, features}) => ({text, features: features ?? ""})));
    lines.forEach(({text, outputs}, number) => {
      const {output} = answers[number];
      if (output === outputs?.[0]) return;
      throw new ExportedModelError(
        `${this.#folder.place}: the answer to ${JSON.stringify(text).slice(0, 60)} is ${JSON.stringify(output)}, but ` +
          `it was ${JSON.stringify(outputs?.[0])} when the model was exported. Install another version of ` +
          "onnxruntime-web, or export the model again.",
      );
    });
    return lines.length;
  }

  async #answers(sources, search, batchSize, attention) {
    const prepared = [];
    for (const source of sources) prepared.push(await this.#task.prepared(source, search));
    const answers = new Array(sources.length);
    for (const rows of grouped(prepared.map((one) => this.#task.shape(one)), batchSize)) {
      const found = await this.#task.answer(rows.map((row) => prepared[row]), search, attention);
      rows.forEach((row, number) => (answers[row] = found[number]));
    }
    return answers;
  }
}

function sourceOf(source) {
  if (typeof source === "string") return {text: source, features: "", image: null};
  const {text = "", features = "", image = null} = source ?? {};
  if (typeof text === "string" && typeof features === "string") return {text, features, image};
  throw new ExportedModelError(
    `expected a text, or an object with text and features or with an image, got ${String(source).slice(0, 40)}. ` +
      "Pass a string.",
  );
}
