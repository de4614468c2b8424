/** The error of the runtime. Each message names the problem, the value, the expected value and a fix. */

/** An exported model, or an input for it, that cannot be used. */
export class ExportedModelError extends Error {
  /** @param {string} message what, got, expected, what to do */
  constructor(message) {
    super(message);
    this.name = "ExportedModelError";
  }
}
