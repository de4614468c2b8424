/** Models from text to text: encode, search in the graph, calibrate, decode. */

import {tokenizerOf} from "../text/tokenizer.mjs";
import {NUM_SPECIAL, UNKNOWN, numbered, tokensOf, unseenSlots} from "../text/vocabulary.mjs";
import {calibrated, scalingsOf} from "./calibration.mjs";
import {checkSize, lengthsOf, limitOf, padded, searchInputs, searchOf} from "./search.mjs";
import {sizeClass} from "./sizes.mjs";
import {rowOf, written} from "./writing.mjs";

const MOST_SOURCE = 1_000_000;
const MOST_SLOTS = 100_000;

/** An exported model from text to text. */
export class Transducer {
  #engine;
  #source;
  #target;
  #features;
  #sourceIds;
  #targetTokens;
  #featureIds;
  #numSlots;
  #lengths;
  #most;
  #scalings;

  /**
   * @param {import("../fields.mjs").Fields} settings content of `model.json`
   * @param {import("../fields.mjs").Fields} vocabulary content of `vocabulary.json`
   * @param {import("../engine.mjs").AnyEngine} engine the graph of the search
   */
  constructor(settings, vocabulary, engine) {
    this.#source = tokenizerOf(settings.at("source"));
    this.#target = tokenizerOf(settings.at("target"));
    this.#features = settings.isNull("features") ? null : tokenizerOf(settings.at("features"));
    this.#sourceIds = numbered(vocabulary.texts("source"));
    this.#targetTokens = vocabulary.texts("target");
    this.#featureIds = numbered(vocabulary.isNull("features") ? [] : vocabulary.texts("features"));
    this.#numSlots = settings.integer("slots", 0, MOST_SLOTS);
    this.#lengths = lengthsOf(settings.at("lengths"));
    this.#most = settings.integer("max_source", 1, MOST_SOURCE);
    this.#scalings = scalingsOf(settings);
    this.#engine = engine;
    /** The default settings. */
    this.search = searchOf(settings.at("prediction"));
  }

  /**
   * Split and number a text and its features.
   *
   * @param {{text: string, features: string}} source
   * @param {import("./search.mjs").Search} search
   */
  prepared({text, features}, search) {
    const found = this.#source.encode(text);
    const tokens = found.length ? found : [""]; // an attention needs a position: one unknown token
    const before = this.#features === null ? [] : this.#features.encode(features);
    checkSize(text, found.length + before.length, this.#most);
    const first = NUM_SPECIAL + this.#sourceIds.size;
    const slots = unseenSlots(found, this.#sourceIds, first, this.#numSlots);
    const ids = tokens.map((token) => slots.get(token) ?? this.#sourceIds.get(token) ?? UNKNOWN);
    const offset = first + this.#numSlots;
    const featureIds = before.map((token) => offset + (this.#featureIds.get(token) ?? UNKNOWN));
    return {
      ids: [...featureIds, ...ids],
      places: [...before, ...tokens],
      slots,
      limit: limitOf(tokens.length, this.#lengths, search),
    };
  }

  /** @param {{ids: number[]}} prepared @returns {number[]} the padded number of positions */
  shape({ids}) {
    return [sizeClass(ids.length)];
  }

  /** @param {{ids: number[]}} prepared @returns {number[]} token ids, as the graph reads them */
  encoded({ids}) {
    return ids;
  }

  /**
   * Answer sources of one padded size in one run of the graph.
   *
   * @param {ReturnType<Transducer["prepared"]>[]} prepared
   * @param {import("./search.mjs").Search} search
   * @param {boolean} attention whether to return the attention
   * @returns {Promise<import("./writing.mjs").Answer[]>}
   */
  async answer(prepared, search, attention) {
    const [size] = this.shape(prepared[0]);
    const inputs = padded(prepared.map(({ids}) => ids), size);
    const limits = prepared.map(({limit}) => limit);
    const found = await this.#engine.run({...inputs, ...searchInputs(limits, search)});
    return prepared.map(({limit, places, slots}, item) => {
      const confidences = calibrated(this.#scalings, rowOf(found.totals.data, item, search.beamSize));
      const decode = (ids) => tokensOf(ids, this.#targetTokens, slots);
      const writing = {limit, places, decode, join: this.#target.decode};
      return written(found, item, confidences, writing, search.nbest, attention);
    });
  }
}
