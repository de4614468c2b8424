/**
 * Spelling features of words, as hashed numbers.
 *
 *     "Redondo"   redondo | r re red | o do ndo ondo | Xx
 */

const REPEATED = /([^\n])\1+/gu;
const LONGEST_SHAPE = 12;
// Python's isdigit(): decimal digits and the digits with another form, such as superscripts.
const DIGIT =
  /[\p{Decimal_Number}\u00b2\u00b3\u00b9\u1369-\u1371\u19da\u2070\u2074-\u2079\u2080-\u2089\u2460-\u2468\u2474-\u247c\u2488-\u2490\u24ea\u24f5-\u24fd\u24ff\u2776-\u277e\u2780-\u2788\u278a-\u2792\u{10a40}-\u{10a43}\u{10e60}-\u{10e68}\u{11052}-\u{1105a}\u{1f100}-\u{1f10a}]/u;
const POLYNOMIAL = 0xedb88320; // of CRC-32, reversed
const CRC_TABLE = Uint32Array.from({length: 256}, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ POLYNOMIAL : value >>> 1;
  return value;
});

/**
 * Return the ids of the features of a word.
 *
 * @param {string} word
 * @param {{prefixes: number, suffixes: number, numBuckets: number}} settings
 * @returns {number[]} an id for each feature
 */
export function spellingNumbers(word, {prefixes, suffixes, numBuckets}) {
  const lower = [...word.toLowerCase()];
  const features = [`low:${lower.join("")}`];
  for (let size = 1; size <= prefixes; size++) features.push(`p${size}:${lower.slice(0, size).join("")}`);
  for (let size = 1; size <= suffixes; size++) features.push(`s${size}:${lower.slice(-size).join("")}`);
  features.push(`shape:${wordShape(word)}`);
  return features.map((feature) => crc32(new TextEncoder().encode(feature)) % numBuckets);
}

/**
 * Return the classes of a word's characters: X uppercase, x lowercase, d digit; other characters are unchanged. Runs of
 * two or more equal classes are shortened to two.
 *
 * @param {string} word
 * @returns {string}
 */
export function wordShape(word) {
  const kinds = Array.from(word, kindOf).join("").replace(REPEATED, "$1$1");
  return [...kinds].slice(0, LONGEST_SHAPE).join("");
}

function kindOf(character) {
  if (/\p{Uppercase}/u.test(character)) return "X";
  if (/\p{Lowercase}/u.test(character)) return "x";
  return DIGIT.test(character) ? "d" : character;
}

function crc32(bytes) {
  let value = 0xffffffff;
  for (const byte of bytes) value = CRC_TABLE[(value ^ byte) & 0xff] ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}
