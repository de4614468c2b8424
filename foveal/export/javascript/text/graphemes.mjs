/**
 * Grapheme clusters of Unicode Annex 29, without rule GB9c.
 *
 * Browsers keep the conjuncts of Hindi or Khmer together (rule GB9c), and differ in their version of Unicode. The models
 * were trained without this rule, so the rules and the classes of the characters are written out here.
 */

import {TABLE} from "./grapheme_table.mjs";

// A letter for each class: carriage return, line feed, control, extend, joiner, regional indicator, prepend, spacing mark,
// Hangul L, V, T, LV and LVT, pictograph, other.
const [CR, LF, CONTROL, EXTEND, JOINER, REGIONAL, PREPEND, MARK, L, V, T, LV, LVT, PICTURE, OTHER] = "rncejipmlvtyzxo";
const FIRST_SYLLABLE = 0xac00;
const LAST_SYLLABLE = 0xd7a3;
const SYLLABLES_PER_VOWEL = 28;
// In these texts, each character is a grapheme: Latin without marks, Greek, Cyrillic, kana, Han.
const SIMPLE = /^[ -~\u00a0-\u00ac\u00ae-\u02ff\u0370-\u0482\u048a-\u0590\u05d0-\u05ea\u3041-\u3096\u30a0-\u30ff\u4e00-\u9fff]*$/;

const {starts, ends, classes} = ranges(TABLE);

/**
 * Split a text into graphemes: a letter with its marks, a flag, a syllable.
 *
 * @param {string} text
 * @returns {string[]}
 */
export function graphemes(text) {
  if (SIMPLE.test(text)) return [...text];
  const found = [];
  let cluster = "";
  let before = "";
  let numRegional = 0; // regional indicators in a row before this character
  let isPicture = false; // whether the cluster ends in a pictograph and its marks
  let isJoined = false; // whether a joiner follows them
  for (const character of text) {
    const now = classOf(character.codePointAt(0));
    if (cluster && breaks(before, now, numRegional, isJoined)) {
      found.push(cluster);
      cluster = "";
    }
    cluster += character;
    numRegional = now === REGIONAL ? numRegional + 1 : 0;
    isJoined = now === JOINER && isPicture;
    isPicture = now === PICTURE || (now === EXTEND && isPicture);
    before = now;
  }
  if (cluster) found.push(cluster);
  return found;
}

function breaks(before, now, numRegional, isJoined) {
  if (before === CR && now === LF) return false;
  if (isControl(before) || isControl(now)) return true;
  if (now === EXTEND || now === JOINER || now === MARK || before === PREPEND) return false;
  if (before === L) return ![L, V, LV, LVT].includes(now);
  if (before === LV || before === V) return now !== V && now !== T;
  if (before === LVT || before === T) return now !== T;
  if (now === PICTURE && isJoined) return false;
  return !(before === REGIONAL && now === REGIONAL && numRegional % 2 === 1);
}

function isControl(kind) {
  return kind === CONTROL || kind === CR || kind === LF;
}

function classOf(code) {
  if (code >= FIRST_SYLLABLE && code <= LAST_SYLLABLE) {
    return (code - FIRST_SYLLABLE) % SYLLABLES_PER_VOWEL === 0 ? LV : LVT;
  }
  let low = 0;
  let high = starts.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends[middle] < code) low = middle + 1;
    else high = middle;
  }
  return low < starts.length && starts[low] <= code ? classes[low] : OTHER;
}

/** Read a table: for each range its class, the distance from the range before, and its length, in base 36. */
function ranges(table) {
  const found = {starts: [], ends: [], classes: []};
  let at = 0;
  for (const each of table.split(" ")) {
    const [distance, size = "1"] = each.slice(1).split(",");
    const start = at + Number.parseInt(distance, 36);
    at = start + Number.parseInt(size, 36);
    found.starts.push(start);
    found.ends.push(at - 1);
    found.classes.push(each[0]);
  }
  return found;
}
