// Symbols and numbers as the page shows them; the same rules as the drawings of foveal.inspection.

const SIGNS = {" ": "␣", "\n": "↵", "\t": "⇥"};
const BLANK = /^[\s\p{Cf}\p{Zs}]+$/u;
// Controls, and the characters that reorder the text around them.
const UNSEEN = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/u;
const LEFT_TO_RIGHT = /\p{L}/u;

function picture(character) {
  const code = character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
  return SIGNS[character] ?? `⟨U+${code}⟩`;
}

/** A symbol made visible. The end of an output, which is no text, is called so. */
export function shown(token) {
  if (token === "") return "end";
  if (BLANK.test(token)) return Array.from(token, picture).join("");
  const visible = token
    .replace(/^ +| +$/g, (blanks) => "␣".repeat(blanks.length))
    .replace(UNSEEN, picture);
  return /^\p{M}/u.test(visible) ? "◌" + visible : visible;
}

/** A symbol inside a sentence: between marks that keep its direction to itself. */
export function named(token) {
  return `\u2068${shown(token)}\u2069`;
}

/** A weight or a probability in few digits. */
export function number(value) {
  if (value === 0) return "0";
  if (value < 1e-4) return "<0.0001";
  return value >= 0.01 ? value.toFixed(3) : value.toPrecision(3);
}

/** The same in two digits, where there is little room. */
export function briefly(value) {
  if (value === 0) return "0";
  return value < 0.005 ? "<.01" : value.toFixed(2);
}

/** The direction in which most symbols are read. */
export function direction(tokens) {
  let balance = 0;
  for (const token of tokens) {
    if (RIGHT_TO_LEFT.test(token)) balance += 1;
    else if (LEFT_TO_RIGHT.test(token)) balance -= 1;
  }
  return balance > 0 ? "rtl" : "ltr";
}

/** The most read of some places as a sentence: "k reads ö 0.912, t 0.051". */
export function reading(token, sources, weights, most = 4) {
  const order = weights.map((weight, place) => [weight, place]).sort((a, b) => b[0] - a[0]);
  const said = order
    .filter(([weight], rank) => rank === 0 || (rank < most && weight >= 0.005))
    .map(([weight, place]) => `${named(sources[place])} ${number(weight)}`);
  return `${named(token)} reads ${said.join(", ")}`;
}
