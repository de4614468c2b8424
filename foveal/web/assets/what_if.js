// What is to be other than the model would have it: a list of changes, in the order of their steps.
//
//   look   at this step the model reads with these weights
//   write  at this step it writes this symbol
//
// A change holds what was written before its step, and undoes changes of later steps: they belonged to
// an output that may be no more. Pure functions; a state is never changed.

/** Read with `weights` at `step`, after the symbols `before`. */
export function look(changes, step, before, weights, place) {
  const kept = changes.filter((one) => one.step < step);
  return [...kept, {kind: "look", step, before, weights, place}];
}

/** Write `token` at `step`, after the symbols `before`. */
export function write(changes, step, before, token) {
  const kept = changes.filter(
    (one) => one.step < step || (one.step === step && one.kind === "look"),
  );
  return [...kept, {kind: "write", step, before, token}];
}

/** What the server is asked: the symbols held, and weights by step. */
export function asked(changes) {
  const last = changes.at(-1);
  if (!last) return {prefix: [], forced: {}};
  const prefix = last.kind === "write" ? [...last.before, last.token] : last.before;
  const looks = changes.filter((one) => one.kind === "look");
  return {prefix, forced: Object.fromEntries(looks.map((one) => [one.step, one.weights]))};
}

/**
 * Weights with `value` at `place`. Where they share one whole (`exclusive`), the others keep their
 * proportions, or share alike if they had nothing.
 */
export function reweighted(weights, place, value, exclusive) {
  const wanted = Math.max(0, Math.min(1, value));
  if (!exclusive) return weights.map((weight, n) => (n === place ? wanted : weight));
  if (weights.length === 1) return [1];
  const others = weights.reduce((sum, weight, n) => (n === place ? sum : sum + weight), 0);
  return weights.map((weight, n) => {
    if (n === place) return wanted;
    const part = others > 1e-9 ? weight / others : 1 / (weights.length - 1);
    return (1 - wanted) * part;
  });
}

/** Weights with everything at `place`. */
export function alone(weights, place) {
  return weights.map((_, n) => (n === place ? 1 : 0));
}
