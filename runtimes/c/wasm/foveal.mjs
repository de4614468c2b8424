/**
 * Answers of the WebAssembly build, in any JavaScript host.
 *
 *     const model = await load(wasmBytes, modelBytes);
 *     model.predict("reykjavik", {nbest: 3}).output;
 */

const ANSWER_WORDS = 8; // fields of foveal_answer, 4 bytes each
const CANDIDATE_SIZE = 24; // text, size, score, padding, confidence

/** A model that a WebAssembly module has loaded. */
class Model {
  #functions;
  #model;

  constructor(functions, content) {
    this.#functions = functions;
    const place = this.#copy(content);
    this.#model = functions.load(place, content.length);
    functions.release(place);
    if (!this.#model) throw this.#failure();
  }

  /** Answer one text. Options: features, beamSize, nbest, lengthPenalty, maxLength, attention. */
  predict(text, options = {}) {
    const {features = "", beamSize = 0, nbest = 0, lengthPenalty = NaN, maxLength = 0, attention = false} = options;
    const places = [this.#text(text), this.#text(features)];
    const settings = [beamSize, nbest, lengthPenalty, maxLength, attention ? 1 : 0];
    const answer = this.#functions.answer(this.#model, ...places, ...settings);
    places.forEach((place) => this.#functions.release(place));
    if (!answer) throw this.#failure();
    const found = this.#read(answer);
    this.#functions.forget(answer);
    return found;
  }

  /** Answer the examples in the file and compare; the number of examples. */
  selfTest() {
    const count = this.#functions.self_test(this.#model);
    if (count < 0) throw this.#failure();
    return count;
  }

  /** Give back the memory of the model, which cannot answer any more. */
  free() {
    this.#functions.unload(this.#model);
    this.#model = 0;
  }

  #read(answer) {
    const buffer = this.#functions.memory.buffer;
    const view = new DataView(buffer);
    const [count, candidates, numTargets, targets, probabilities, numSources, sources, weights] = Array.from(
      {length: ANSWER_WORDS},
      (_, number) => view.getUint32(answer + 4 * number, true),
    );
    const nbest = Array.from({length: count}, (_, number) => {
      const at = candidates + CANDIDATE_SIZE * number;
      const output = this.#string(view.getUint32(at, true), view.getUint32(at + 4, true));
      return {output, score: view.getFloat32(at + 8, true), confidence: view.getFloat64(at + 16, true)};
    });
    const names = (place, size) =>
      Array.from({length: size}, (_, number) => this.#string(view.getUint32(place + 4 * number, true)));
    const numbers = (place, size) => Array.from(new Float32Array(buffer, place, size));
    const found = {...nbest[0], nbest, tokenProbabilities: numbers(probabilities, numTargets)};
    if (weights) {
      const rows = Array.from({length: numTargets}, (_, row) => numbers(weights + 4 * numSources * row, numSources));
      found.attention = {sources: names(sources, numSources), targets: names(targets, numTargets), weights: rows};
    }
    return found;
  }

  #string(place, size) {
    const bytes = new Uint8Array(this.#functions.memory.buffer);
    const end = size === undefined ? bytes.indexOf(0, place) : place + size;
    return new TextDecoder().decode(bytes.subarray(place, end));
  }

  #copy(bytes) {
    const place = this.#functions.allocate(bytes.length);
    if (!place) throw new Error(`out of memory: ${bytes.length} bytes. Use a smaller model or text.`);
    new Uint8Array(this.#functions.memory.buffer).set(bytes, place);
    return place;
  }

  #text(text) {
    return this.#copy(new TextEncoder().encode(`${text}\0`));
  }

  #failure() {
    return new Error(this.#string(this.#functions.message()));
  }
}

/** Load the module and a model, both as bytes. */
export async function load(wasm, content) {
  const {instance} = await WebAssembly.instantiate(wasm, {});
  return new Model(instance.exports, content);
}
