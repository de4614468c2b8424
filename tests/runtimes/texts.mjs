/** Functions of the runtime's modules for the tests, with data of JSON as arguments and results. */

import {preparedPixels} from "../../foveal/export/javascript/tasks/pixels.mjs";
import {imageSize} from "../../foveal/export/javascript/tasks/headers.mjs";
import {Chain} from "../../foveal/export/javascript/tasks/chain.mjs";
import {calibrated} from "../../foveal/export/javascript/tasks/calibration.mjs";
import {digestOf} from "../../foveal/export/javascript/sha256.mjs";
import {Fields} from "../../foveal/export/javascript/fields.mjs";
import {spellingNumbers, wordShape} from "../../foveal/export/javascript/text/spelling.mjs";
import {Subwords} from "../../foveal/export/javascript/text/subwords.mjs";
import {characters, features, pieces} from "../../foveal/export/javascript/text/text.mjs";

/** Split every text in all ways. */
export function split(texts) {
  return texts.map((text) => [
    characters(text, "grapheme", "keep"),
    characters(text, "code_point", "drop"),
    pieces(text),
    features(text, ";"),
    features(text, ""),
  ]);
}

/** Spelling features of words. */
export function spelled(words, settings) {
  return words.map((word) => [wordShape(word), spellingNumbers(word, settings)]);
}

/** Subwords of texts, and the texts of lists of tokens. */
export function subwords(model, texts, lists) {
  const tokenizer = new Subwords(model);
  return [texts.map((text) => tokenizer.encode(text)), lists.map((tokens) => tokenizer.decode(tokens))];
}

/** Calibrated probabilities of lists. */
export function confidences(scalings, lists) {
  return lists.map((logProbs) => calibrated(scalings, logProbs.map((each) => each ?? -Infinity)));
}

/** The best taggings of a sentence. */
export function taggings(scores, numTags, unary, numWords, k) {
  const chain = new Chain(scores === null ? null : new Fields("crf", scores), numTags);
  const {tags, logProbs, probabilities} = chain.best(unary, numWords, k);
  return {tags, logProbs: logProbs.map((each) => (each === -Infinity ? null : each)), probabilities};
}

/** Prepared images, as lists of rows for each channel. */
export function prepared(images) {
  return images.map(([pixels, settings]) => {
    const {width, height, planes} = preparedPixels(pixels, settings);
    return {width, height, planes: planes.map((plane) => Array.from(plane))};
  });
}

/** Sizes in the headers of image files, which are given in base64. */
export function sizes(files) {
  return files.map((file) => imageSize(new Uint8Array(Buffer.from(file, "base64"))));
}

/** SHA-256 without the platform, of contents in base64. */
export function digests(contents) {
  return contents.map((each) => Buffer.from(digestOf(new Uint8Array(Buffer.from(each, "base64")))).toString("hex"));
}
