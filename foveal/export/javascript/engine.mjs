/** ONNX Runtime Web on its WebAssembly backend, one session for each model. */

import {ExportedModelError} from "./errors.mjs";

/**
 * An array with axes. Numbers of the type int64 are stored as ordinary numbers, which hold every token id exactly.
 *
 * @typedef {object} Tensor
 * @property {"int64" | "int32" | "float32"} type
 * @property {number[]} dims
 * @property {ArrayLike<number>} data
 */

/**
 * Runs the graph of a model. An engine has a method `run` and the names of its outputs.
 *
 * @typedef {object} AnyEngine
 * @property {(inputs: Record<string, Tensor>) => Promise<Record<string, Tensor>>} run
 */

/** A graph that is ready to run. */
export class OnnxEngine {
  #ort;
  #session;

  /** @param {object} ort the module onnxruntime-web @param {object} session */
  constructor(ort, session) {
    this.#ort = ort;
    this.#session = session;
  }

  /**
   * Load a graph.
   *
   * @param {object} ort the module onnxruntime-web
   * @param {Uint8Array} graph content of the file of the graph
   * @returns {Promise<OnnxEngine>}
   * @throws {ExportedModelError} ONNX Runtime cannot load the graph.
   */
  static async open(ort, graph) {
    // Several threads need a page that is isolated from other origins, and do not pay for models of this size.
    ort.env.wasm.numThreads = 1;
    const options = {executionProviders: ["wasm"], logSeverityLevel: 3};
    try {
      return new OnnxEngine(ort, await ort.InferenceSession.create(graph, options));
    } catch (error) {
      throw new ExportedModelError(
        `ONNX Runtime cannot load the graph: ${String(error.message ?? error).slice(0, 300)}. Export the model ` +
          "again, or install onnxruntime-web 1.20 or newer.",
      );
    }
  }

  /**
   * Run the graph.
   *
   * @param {Record<string, Tensor>} inputs
   * @returns {Promise<Record<string, Tensor>>} the outputs by name
   */
  async run(inputs) {
    const given = {};
    for (const [name, {type, dims, data}] of Object.entries(inputs)) {
      given[name] = new this.#ort.Tensor(type, arrayOf(type, data), dims);
    }
    const found = await this.#session.run(given);
    const outputs = {};
    for (const name of this.#session.outputNames) {
      const {type, dims, data} = found[name];
      outputs[name] = {type, dims: [...dims], data: type === "int64" ? Float64Array.from(data, Number) : data};
    }
    return outputs;
  }
}

function arrayOf(type, data) {
  if (type === "int64") return BigInt64Array.from(data, BigInt);
  return type === "int32" ? Int32Array.from(data) : Float32Array.from(data);
}
