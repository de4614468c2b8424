/**
 * Calibrated confidence from the log-probabilities of candidates.
 *
 *     p_i = exp( s_i / T ) / ( sum over j of exp( s_j / T ) + exp( r / T + b ) ),   r = log( 1 - sum exp s_i )
 */

// Sums of probabilities in float32 are accurate to about this value, so the remaining probability is at least this.
const LEAST_REST = 1e-6;

/**
 * The parameters for lists of one length; `others` is null if the candidates are complete.
 *
 * @typedef {{temperature: number, others: number | null}} Scaling
 */

/**
 * Read the parameters of `model.json`: the entry n - 1 is for lists of n candidates.
 *
 * @param {import("../fields.mjs").Fields} settings
 * @returns {Scaling[]}
 */
export function scalingsOf(settings) {
  return settings.list("calibration").map((each) => ({
    temperature: each.number("temperature"),
    others: each.isNull("others") ? null : each.number("others"),
  }));
}

/**
 * Compute the probability that each candidate is correct.
 *
 * In a list that is longer than those of the parameters, the last candidates share the probability of "none of these".
 *
 * @param {Scaling[]} scalings
 * @param {ArrayLike<number>} logProbs best first; -Infinity marks a missing candidate
 * @returns {number[]}
 */
export function calibrated(scalings, logProbs) {
  const given = Array.from(logProbs);
  const isComplete = scalings[0].others === null;
  const first = isComplete ? given : given.slice(0, scalings.length);
  const left = Math.max(1 - first.reduce((sum, each) => sum + Math.exp(each), 0), LEAST_REST);
  const rest = isComplete ? -Infinity : Math.log(left);
  const {temperature, others} = scalings[isComplete ? 0 : first.length - 1];
  const logits = [...first.map((each) => each / temperature), rest / temperature + (others ?? 0)];
  const highest = logits.reduce((a, b) => Math.max(a, b));
  const parts = logits.map((each) => Math.exp(each - highest));
  const sum = parts.reduce((a, b) => a + b);
  const none = parts.at(-1) / sum;
  return given.map((each, rank) =>
    rank < first.length ? parts[rank] / sum : none * Math.min(Math.exp(each - rest), 1),
  );
}
