// Which symbols of two outputs have no counterpart in the other: those outside a longest common
// subsequence.

const MOST_CELLS = 1_000_000;

/** For each symbol of `tokens`, whether it differs from `other`. */
export function differing(tokens, other) {
  if (tokens.length * other.length > MOST_CELLS) return tokens.map((t, n) => t !== other[n]);
  const width = other.length + 1;
  const longest = new Uint16Array((tokens.length + 1) * width);
  for (let i = tokens.length - 1; i >= 0; i--) {
    for (let j = other.length - 1; j >= 0; j--) {
      longest[i * width + j] =
        tokens[i] === other[j]
          ? longest[(i + 1) * width + j + 1] + 1
          : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    }
  }
  const differs = new Array(tokens.length).fill(true);
  let i = 0;
  let j = 0;
  while (i < tokens.length && j < other.length) {
    if (tokens[i] === other[j]) {
      differs[i] = false;
      i += 1;
      j += 1;
    } else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) i += 1;
    else j += 1;
  }
  return differs;
}
