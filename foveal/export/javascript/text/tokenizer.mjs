/** The tokenizers of an exported model, from the settings in `model.json`. */

import {ExportedModelError} from "../errors.mjs";
import {Subwords} from "./subwords.mjs";
import {characters, features, pieces} from "./text.mjs";

const KINDS = ["characters", "whitespace", "features", "sentencepiece", "latex"];
const FORMS = ["none", "NFC", "NFD", "NFKC", "NFKD"];

/**
 * Splits a text into tokens, and joins tokens to a text.
 *
 * @typedef {object} Tokenizer
 * @property {(text: string) => string[]} encode
 * @property {(tokens: string[]) => string} decode
 */

/**
 * Return the tokenizer with these settings.
 *
 * @param {import("../fields.mjs").Fields} settings with their `kind`, as in a spec
 * @returns {Tokenizer}
 */
export function tokenizerOf(settings) {
  const kind = settings.one("kind", KINDS);
  if (kind === "sentencepiece") {
    const subwords = new Subwords(settings.text("model"));
    return {encode: (text) => subwords.encode(text), decode: (tokens) => subwords.decode(tokens)};
  }
  if (kind === "latex") return {encode: refuseLatex, decode: (tokens) => tokens.join(" ")};
  if (kind === "features") {
    const separator = settings.text("separator");
    return {encode: (text) => features(text, separator), decode: (tokens) => tokens.join(separator)};
  }
  const form = settings.one("normalization", FORMS);
  const normalized = (text) => (form === "none" ? text : text.normalize(form));
  if (kind === "whitespace") {
    return {encode: (text) => pieces(normalized(text)), decode: (tokens) => tokens.join(" ")};
  }
  const unit = settings.one("unit", ["grapheme", "code_point"]);
  const spaces = settings.one("spaces", ["keep", "drop"]);
  return {
    encode: (text) => characters(normalized(text), unit, spaces),
    decode: (tokens) => tokens.join(""),
  };
}

function refuseLatex(text) {
  throw new ExportedModelError(
    `a formula can only be an output, got the input ${JSON.stringify(text.slice(0, 40))}. Pass an image.`,
  );
}
