/** Parse a plain model file; `runtimes/plain_format.md` describes its fields. */

import {ExportedModelError} from "../errors.mjs";
import {sha256} from "../sha256.mjs";
import {NUM_SPECIAL} from "../text/vocabulary.mjs";
import {Reader, damaged} from "./reader.mjs";

const MAGIC = [0x89, 0x46, 0x56, 0x4c, 0x0d, 0x0a, 0x1a, 0x0a];
const VERSION = 1;
const CHECKSUM_SIZE = 32;
const MOST_WIDTH = 65_536;
const MOST_LAYERS = 64;
const NO_MAX_LENGTH = 2 ** 32 - 1;
const CELLS = ["lstm", "gru", "elman"];
const GATES = {lstm: 4, gru: 3, elman: 1};
const BRIDGES = ["initial_state", "every_step", "both", "learned", "none"];
const ATTENTIONS = ["none", "softmax", "sigmoid", "segment", "hard", "latent_hard", "latent_monotone"];
const SCORERS = ["none", "dot", "bilinear", "additive", "linear"];
const TOKENIZERS = ["none", "grapheme", "code_point", "whitespace", "features"];

/**
 * Parse a file.
 *
 * @param {Uint8Array} content
 * @returns {Promise<object>} `about`, `settings` and `vocabulary` in the form of the exported JSON files, the weights of the
 *   `encoder` and the `decoder`, and `examples`
 * @throws {ExportedModelError} The file is damaged, or written by a newer version.
 */
export async function readPlain(content) {
  const reader = new Reader(content);
  if (!reader.bytes(MAGIC.length).every((byte, at) => byte === MAGIC[at])) {
    throw damaged("it does not begin like a plain model file");
  }
  const version = reader.integer("the version", 0, 2 ** 32 - 1);
  if (version !== VERSION) {
    throw new ExportedModelError(
      `the plain model file has version ${version}, this runtime reads version ${VERSION}. Install another ` +
        "foveal-runtime, or export the model again.",
    );
  }
  const checksum = Array.from(reader.bytes(CHECKSUM_SIZE), (byte) => byte.toString(16).padStart(2, "0")).join("");
  if ((await sha256(content.subarray(MAGIC.length + 4 + CHECKSUM_SIZE))) !== checksum) {
    throw damaged("it has a wrong sha256 checksum");
  }
  const about = readAbout(reader);
  const [source, target, features] = ["source", "target", "features"].map((name) => readTokenizer(reader, name));
  const vocabulary = readVocabulary(reader);
  const settings = {source, target, features, ...readSettings(reader), calibration: readCalibration(reader)};
  const encoder = readEncoder(reader, vocabulary, settings);
  const decoder = readDecoder(reader, encoder, vocabulary, settings);
  const examples = readExamples(reader);
  reader.end();
  return {about, settings, vocabulary, encoder, decoder, examples};
}

function readAbout(reader) {
  return {
    version: reader.text("the version of foveal"),
    license: reader.text("the license"),
    data: reader.texts("lines about the data", 1_000),
  };
}

function readTokenizer(reader, name) {
  const kind = TOKENIZERS[reader.small(`the tokenizer of the ${name}`, TOKENIZERS.length - 1)];
  const drops = reader.flag("drop");
  const separator = reader.text("the separator");
  if (kind === "none") {
    if (name !== "features") throw damaged(`there is no tokenizer of the ${name}`);
    return null;
  }
  if (kind === "features") return {kind, separator};
  if (kind === "whitespace") return {kind, normalization: "none"};
  return {kind: "characters", unit: kind, spaces: drops ? "drop" : "keep", normalization: "none"};
}

function readVocabulary(reader) {
  const vocabulary = {};
  for (const name of ["source", "target", "features"]) {
    vocabulary[name] = reader.texts(`tokens of the ${name}`);
    if (new Set(vocabulary[name]).size !== vocabulary[name].length) throw damaged(`a token of the ${name} is twice in its list`);
  }
  return vocabulary;
}

function readSettings(reader) {
  const slots = reader.integer("slots", 0, 65_536);
  const maxSource = reader.integer("max_source", 1, 1_000_000);
  const lengths = {ratio: reader.double("ratio", 0, 1_000), slack: reader.double("slack", 0, 1_000_000)};
  const beamSize = reader.integer("beam_size", 1, 10_000);
  const nbest = reader.integer("nbest", 1, beamSize);
  const lengthPenalty = reader.double("length_penalty", -100, 100);
  const maxLength = reader.integer("max_length", 0, NO_MAX_LENGTH);
  const prediction = {
    beam_size: beamSize,
    nbest,
    length_penalty: lengthPenalty,
    max_length: maxLength === NO_MAX_LENGTH ? null : maxLength,
  };
  return {slots, max_source: maxSource, lengths, prediction};
}

function readCalibration(reader) {
  const number = reader.count("scalings", 10_000, 17);
  if (number === 0) throw damaged("there is no calibration");
  const scalings = Array.from({length: number}, () => {
    const temperature = reader.double("a temperature", Number.MIN_VALUE, Number.MAX_VALUE);
    const hasOthers = reader.flag("has_others");
    const others = reader.double("others", -Number.MAX_VALUE, Number.MAX_VALUE);
    return {temperature, others: hasOthers ? others : null};
  });
  if (number > 1 && scalings.some(({others}) => others === null)) throw damaged("a scaling has no others");
  return scalings;
}

function readEncoder(reader, vocabulary, {slots, features}) {
  const cell = CELLS[reader.small("the cell of the encoder", CELLS.length - 1)];
  const embeddingSize = reader.integer("the embedding of the encoder", 1, MOST_WIDTH);
  const size = reader.integer("the state of the encoder", 1, MOST_WIDTH);
  const numLayers = reader.integer("the layers of the encoder", 1, MOST_LAYERS);
  const [bidirectional, residual, skip, isLearned] = ["bidirectional", "residual", "skip", "learned"].map((name) =>
    reader.flag(name),
  );
  const directions = bidirectional ? 2 : 1;
  const gates = GATES[cell] * size;
  const numIds = NUM_SPECIAL + vocabulary.source.length + slots;
  const numFeatures = features === null ? 0 : NUM_SPECIAL + vocabulary.features.length;
  const embedding = reader.matrix("the embedding", numIds + numFeatures, embeddingSize);
  const layers = Array.from({length: numLayers}, (_, layer) => {
    const below = layer === 0 ? embeddingSize : directions * size + (skip ? embeddingSize : 0);
    return Array.from({length: directions}, () => {
      const weights = {
        input: reader.matrix("input weights", gates, below),
        state: reader.matrix("state weights", gates, size),
        bias: reader.vector("a bias", gates),
        stateBias: cell === "gru" ? reader.vector("a bias", gates) : null,
      };
      const hidden = isLearned ? reader.vector("a first state", size) : new Float32Array(size);
      const memory = isLearned && cell === "lstm" ? reader.vector("a first memory", size) : new Float32Array(size);
      return {...weights, first: {hidden, memory}};
    });
  });
  return {cell, size, residual, skip, embedding, layers, valueSize: directions * size};
}

function readDecoder(reader, {valueSize}, vocabulary, {slots}) {
  const plan = readPlan(reader);
  const {cell, embeddingSize, size, numLayers, skip, bridge, attention, scorer} = plan;
  checkPlan(plan, valueSize, vocabulary, slots);
  const gates = GATES[cell] * size;
  const numTokens = NUM_SPECIAL + vocabulary.target.length + slots;
  const vectorSize = plan.tied ? embeddingSize : size;
  const contextSize = plan.before ? valueSize : plan.feeding ? vectorSize : 0;
  const summarySize = bridge === "every_step" || bridge === "both" ? valueSize : 0;
  const inputSize = embeddingSize + summarySize + contextSize;
  const matrix = (rows, columns) => reader.matrix("weights of the decoder", rows, columns);
  const vector = (length) => reader.vector("a bias of the decoder", length);
  const stateBias = () => (cell === "gru" ? vector(gates) : null);
  const found = {...plan, numTokens, vectorSize, valueSize};
  found.embedding = !plan.table || plan.deep ? matrix(numTokens, embeddingSize) : null;
  found.tokenGates = plan.table ? matrix(numTokens, gates) : null;
  found.tokenWeights = plan.table ? null : {weight: matrix(gates, embeddingSize), bias: vector(gates)};
  found.ofSummary = summarySize ? matrix(gates, valueSize) : null;
  found.ofContext = contextSize ? matrix(gates, contextSize) : null;
  found.layers = [{input: null, bias: null, state: matrix(gates, size), stateBias: stateBias()}];
  for (let layer = 1; layer < numLayers; layer++) {
    const input = matrix(gates, size + (skip ? inputSize : 0));
    const bias = vector(gates);
    found.layers.push({input, bias, state: matrix(gates, size), stateBias: stateBias()});
  }
  found.first = readFirst(plan, matrix, vector, valueSize);
  found.scoring = scorer === "none" ? null : readScorer(reader, plan, matrix, vector, valueSize);
  found.chain = attention === "segment" ? readChain(reader) : null;
  const combines = attention !== "none" && !plan.before;
  found.ofValue = combines ? matrix(vectorSize, valueSize) : null;
  found.ofHidden = combines ? matrix(vectorSize, size) : null;
  const deepSize = size + embeddingSize + valueSize;
  found.deepWeights = plan.deep ? {weight: matrix(2 * vectorSize, deepSize), bias: vector(2 * vectorSize)} : null;
  found.output = plan.tied ? found.embedding : matrix(numTokens, vectorSize);
  found.outputBias = vector(numTokens);
  found.gate = plan.copy ? {weight: matrix(1, vectorSize), bias: reader.float("the gate")} : null;
  return found;
}

function readPlan(reader) {
  const named = (name, names) => names[reader.small(name, names.length - 1)];
  return {
    cell: named("the cell of the decoder", CELLS),
    embeddingSize: reader.integer("the embedding of the decoder", 1, MOST_WIDTH),
    size: reader.integer("the state of the decoder", 1, MOST_WIDTH),
    numLayers: reader.integer("the layers of the decoder", 1, MOST_LAYERS),
    residual: reader.flag("residual"),
    skip: reader.flag("skip"),
    bridge: named("the bridge", BRIDGES),
    attention: named("the attention", ATTENTIONS),
    scorer: named("the scorer", SCORERS),
    scoreSize: reader.integer("the hidden layer of the scorer", 0, MOST_WIDTH),
    before: reader.flag("before"),
    deep: reader.flag("deep"),
    feeding: reader.flag("feeding"),
    tied: reader.flag("tied"),
    copy: reader.flag("copy"),
    table: reader.flag("table"),
  };
}

function checkPlan(plan, valueSize, vocabulary, slots) {
  const {attention, scorer} = plan;
  const attends = attention !== "none";
  const isLatent = attention.startsWith("latent");
  const vectorSize = plan.tied ? plan.embeddingSize : plan.size;
  const rules = {
    "an attention and its scorer": attends === (scorer !== "none"),
    "the hidden layer of the scorer": (scorer === "additive") === plan.scoreSize > 0,
    "before, feeding and copy": attends ? !isLatent || !(plan.before || plan.feeding || plan.copy) : !(plan.before || plan.feeding || plan.copy),
    "before and feeding": !(plan.before && plan.feeding),
    "deep and before": plan.before || !plan.deep,
    "tied and table": !(plan.tied && plan.table),
    "table, residual and skip": !plan.table || (!plan.residual && (!plan.skip || plan.numLayers === 1)),
    "copy and attention": !plan.copy || ["softmax", "hard"].includes(attention),
    "slots and copy": plan.copy || slots === 0,
    "the vocabularies of a model that copies": !plan.copy || vocabulary.source.length === vocabulary.target.length,
    "the widths of a dot product": scorer !== "dot" || plan.size === valueSize,
    "the width of the output layer": (attends && (!plan.before || plan.deep)) || vectorSize === plan.size,
  };
  for (const [name, holds] of Object.entries(rules)) {
    if (!holds) throw damaged(`${name} do not fit together`);
  }
}

/** Read how each layer begins: by the summary, by learned vectors, or with 0. */
function readFirst({cell, bridge, size, numLayers}, matrix, vector, valueSize) {
  const parts = cell === "lstm" ? ["hidden", "memory"] : ["hidden"];
  const isBridged = bridge === "initial_state" || bridge === "both";
  const read = () => {
    if (isBridged) return {weight: matrix(size, valueSize), bias: vector(size)};
    return {vector: bridge === "learned" ? vector(size) : new Float32Array(size)};
  };
  return Array.from({length: numLayers}, () => Object.fromEntries(parts.map((part) => [part, read()])));
}

function readScorer(reader, {scorer, scoreSize, size}, matrix, vector, valueSize) {
  if (scorer === "dot") return {scale: reader.float("the scale of scores")};
  if (scorer === "bilinear") return {key: matrix(size, valueSize)};
  if (scorer === "linear") return {key: matrix(1, valueSize), query: matrix(1, size)};
  const [key, bias] = [matrix(scoreSize, valueSize), vector(scoreSize)];
  return {key, bias, query: matrix(scoreSize, size), combine: matrix(1, scoreSize)};
}

function readChain(reader) {
  const [t00, t01, t10, t11] = Array.from({length: 4}, () => reader.float("a transition"));
  const total = reader.float("the total");
  if (total < 0) throw damaged(`the total is ${total}, expected a number from 0`);
  return {t00, t01, t10, t11, total};
}

function readExamples(reader) {
  const number = reader.count("examples", 200, 20);
  return Array.from({length: number}, () => ({
    text: reader.text("an input"),
    features: reader.text("features"),
    output: reader.text("an output"),
    score: reader.double("a score", -Number.MAX_VALUE, Number.MAX_VALUE),
  }));
}
