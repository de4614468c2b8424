/** Models that label: a tag for each word, or a class for a text. */

import {spellingNumbers} from "../text/spelling.mjs";
import {tokenizerOf} from "../text/tokenizer.mjs";
import {UNKNOWN, numbered} from "../text/vocabulary.mjs";
import {calibrated, scalingsOf} from "./calibration.mjs";
import {Chain} from "./chain.mjs";
import {largest} from "./ranking.mjs";
import {checkSize, padded, ranked, searchOf} from "./search.mjs";
import {sizeClass} from "./sizes.mjs";
import {rowOf} from "./writing.mjs";

const MOST_SOURCE = 1_000_000;
const MOST_AFFIX = 100;
const MOST_BUCKETS = 2 ** 31 - 1;

/** Splits and numbers texts. */
class Reader {
  #tokenizer;
  #ids;
  #most;

  constructor(settings, vocabulary) {
    this.#tokenizer = tokenizerOf(settings.at("source"));
    this.#ids = numbered(vocabulary.texts("source"));
    this.#most = settings.integer("max_source", 1, MOST_SOURCE);
  }

  words(text) {
    const tokens = this.#tokenizer.encode(text);
    checkSize(text, tokens.length, this.#most);
    return {tokens, ids: tokens.map((token) => this.#ids.get(token) ?? UNKNOWN)};
  }
}

/** An exported model that tags words. */
export class Tagger {
  #reader;
  #labels;
  #chain;
  #spelling;
  #scalings;
  #engine;

  /**
   * @param {import("../fields.mjs").Fields} settings content of `model.json`
   * @param {import("../fields.mjs").Fields} vocabulary content of `vocabulary.json`
   * @param {import("../engine.mjs").AnyEngine} engine the graph that scores the tags of each word
   */
  constructor(settings, vocabulary, engine) {
    this.#reader = new Reader(settings, vocabulary);
    this.#labels = vocabulary.texts("labels");
    this.#chain = new Chain(settings.isNull("crf") ? null : settings.at("crf"), this.#labels.length);
    this.#spelling = settings.isNull("spelling") ? null : spellingOf(settings.at("spelling"));
    this.#scalings = scalingsOf(settings);
    this.#engine = engine;
    /** The default settings. */
    this.search = searchOf(settings.at("prediction"));
  }

  /** @param {{text: string}} source */
  prepared({text}) {
    const words = this.#reader.words(text);
    const given = this.#spelling;
    return {...words, spelling: given === null ? [] : words.tokens.map((word) => spellingNumbers(word, given))};
  }

  /** @param {{ids: number[]}} prepared @returns {number[]} the padded number of words */
  shape({ids}) {
    return [sizeClass(ids.length)];
  }

  /** @param {{ids: number[]}} prepared @returns {number[]} token ids, as the graph reads them */
  encoded({ids}) {
    return ids;
  }

  /**
   * Tag sentences of one padded size; the scores are log-probabilities of whole taggings.
   *
   * @param {ReturnType<Tagger["prepared"]>[]} prepared
   * @param {import("./search.mjs").Search} search
   * @returns {Promise<import("./writing.mjs").Answer[]>}
   */
  async answer(prepared, search) {
    const [size] = this.shape(prepared[0]);
    const inputs = padded(prepared.map(({ids}) => ids), size);
    if (this.#spelling !== null) inputs.spelling = this.#paddedSpelling(prepared, size);
    const {unary} = await this.#engine.run(inputs);
    return prepared.map(({tokens}, item) => {
      const scores = rowOf(unary.data, item, size * this.#labels.length);
      const found = this.#chain.best(scores, tokens.length, search.beamSize);
      const logProbs = found.logProbs.map(Math.fround); // in float32, as the library returns them
      const missing = new Array(search.beamSize - logProbs.length).fill(-Infinity);
      const confidences = calibrated(this.#scalings, [...logProbs, ...missing]);
      const outputs = found.tags.map((tags) => tags.map((tag) => this.#labels[tag]).join(" "));
      const nbest = ranked(outputs, logProbs, confidences, search.nbest);
      return {...nbest[0], nbest, tokenProbabilities: found.probabilities, attention: null};
    });
  }

  #paddedSpelling(prepared, size) {
    const {prefixes, suffixes} = this.#spelling;
    const numFeatures = 2 + prefixes + suffixes;
    const data = new Float64Array(prepared.length * size * numFeatures);
    prepared.forEach(({spelling}, item) => data.set(spelling.flat(), item * size * numFeatures));
    return {type: "int64", dims: [prepared.length, size, numFeatures], data};
  }
}

/** An exported model that classifies texts; its candidates are all classes. */
export class Classifier {
  #reader;
  #labels;
  #scalings;
  #engine;

  /**
   * @param {import("../fields.mjs").Fields} settings content of `model.json`
   * @param {import("../fields.mjs").Fields} vocabulary content of `vocabulary.json`
   * @param {import("../engine.mjs").AnyEngine} engine the graph that scores the classes
   */
  constructor(settings, vocabulary, engine) {
    this.#reader = new Reader(settings, vocabulary);
    this.#labels = vocabulary.texts("labels");
    this.#scalings = scalingsOf(settings);
    this.#engine = engine;
    /** The default settings. */
    this.search = searchOf(settings.at("prediction"));
  }

  /** @param {{text: string}} source an empty text is one unknown token */
  prepared({text}) {
    const words = this.#reader.words(text);
    return words.tokens.length ? words : {tokens: [""], ids: [UNKNOWN]};
  }

  /** @param {{ids: number[]}} prepared @returns {number[]} the padded number of tokens */
  shape({ids}) {
    return [sizeClass(ids.length)];
  }

  /** @param {{ids: number[]}} prepared @returns {number[]} token ids, as the graph reads them */
  encoded({ids}) {
    return ids;
  }

  /**
   * Classify texts of one padded size; the scores are log-probabilities.
   *
   * @param {ReturnType<Classifier["prepared"]>[]} prepared
   * @param {import("./search.mjs").Search} search
   * @param {boolean} attention whether to return the attention
   * @returns {Promise<import("./writing.mjs").Answer[]>}
   */
  async answer(prepared, search, attention) {
    const [size] = this.shape(prepared[0]);
    const found = await this.#engine.run(padded(prepared.map(({ids}) => ids), size));
    const numLabels = this.#labels.length;
    return prepared.map(({tokens}, item) => {
      const all = rowOf(found.log_probs.data, item, numLabels);
      const order = largest(all, numLabels);
      const logProbs = order.map((label) => all[label]);
      const outputs = order.map((label) => this.#labels[label]);
      const nbest = ranked(outputs, logProbs, calibrated(this.#scalings, logProbs), search.nbest);
      let read = null;
      if (attention && found.weights !== undefined) {
        const weights = Array.from(rowOf(found.weights.data, item, size).slice(0, tokens.length));
        read = {sources: tokens, targets: [outputs[0]], weights: [weights]};
      }
      return {...nbest[0], nbest, tokenProbabilities: [], attention: read};
    });
  }
}

function spellingOf(settings) {
  return {
    prefixes: settings.integer("prefixes", 0, MOST_AFFIX),
    suffixes: settings.integer("suffixes", 0, MOST_AFFIX),
    numBuckets: settings.integer("num_buckets", 1, MOST_BUCKETS),
  };
}
