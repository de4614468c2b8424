/**
 * Text to tokens, with the same result as in Python.
 *
 * The spaces are written out, because languages differ in the meaning of \s and trim().
 */

import {graphemes} from "./graphemes.mjs";

const SPACE = "\\t-\\r\\x1c-\\x20\\x85\\u1680\\u2000-\\u2006\\u2008-\\u200a\\u2028\\u2029\\u205f\\u3000";
// No-break spaces do not separate tokens: CoNLL-U has words with a space inside.
const ANY_SPACE = `${SPACE}\\xa0\\u2007\\u202f`;
const PIECES = new RegExp(`[^${SPACE}]+`, "gu");
const SPACES = new RegExp(`[${ANY_SPACE}]+`, "gu");
const EDGES = new RegExp(`^[${ANY_SPACE}]+|[${ANY_SPACE}]+$`, "gu");

/**
 * Split a text on whitespace, except no-break spaces.
 *
 * @param {string} text
 * @returns {string[]}
 */
export function pieces(text) {
  return text.match(PIECES) ?? [];
}

/**
 * Split a text into graphemes or code points.
 *
 * @param {string} text
 * @param {"grapheme" | "code_point"} unit
 * @param {"keep" | "drop"} spaces whether spaces are tokens or are dropped
 * @returns {string[]}
 */
export function characters(text, unit, spaces) {
  const kept = spaces === "drop" ? text.replace(SPACES, "") : text;
  return unit === "code_point" ? [...kept] : graphemes(kept);
}

/**
 * Split features such as V;IND;PST, without empty ones.
 *
 * @param {string} text
 * @param {string} separator
 * @returns {string[]}
 */
export function features(text, separator) {
  const parts = separator ? text.split(separator) : [text];
  return parts.map((part) => part.replace(EDGES, "")).filter(Boolean);
}
