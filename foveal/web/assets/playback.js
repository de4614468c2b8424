// The recording that a run heard, and the span of it that a step read.

const LEAST = 0.5; // of the highest weight: less is not part of a span

/**
 * The positions around the highest weight that have at least half of it: the first, and the one after the last.
 * Null without weights.
 */
export function span(weights) {
  const most = weights ? Math.max(...weights) : 0;
  if (!(most > 0)) return null;
  let first = weights.indexOf(most);
  let end = first + 1;
  while (first > 0 && weights[first - 1] >= LEAST * most) first -= 1;
  while (end < weights.length && weights[end] >= LEAST * most) end += 1;
  return [first, end];
}

export class Playback {
  #audio;
  #seconds = 0; // of a position
  #end = Infinity; // where the span that plays ends

  constructor(audio) {
    this.#audio = audio;
    audio.addEventListener("pause", () => (this.#end = Infinity));
    audio.addEventListener("play", () => this.#watch());
  }

  /** Offer the recording; `recording` is a data URI, or null where the input is no recording. */
  show(recording, sources) {
    this.#audio.hidden = !recording;
    if (!recording) {
      this.#audio.pause();
      this.#audio.removeAttribute("src");
      return;
    }
    // A position is named by the time at which it begins, such as "0.08 s".
    this.#seconds = sources.length > 1 ? Number.parseFloat(sources.at(-1)) / (sources.length - 1) : Infinity;
    if (this.#audio.src !== recording) this.#audio.src = recording;
  }

  /** Play the positions that a step read. */
  async play(weights) {
    const found = span(weights);
    if (this.#audio.hidden || !found) return;
    this.#audio.pause();
    this.#audio.currentTime = found[0] && found[0] * this.#seconds;
    try {
      await this.#audio.play();
      this.#end = found[1] * this.#seconds;
    } catch (error) {
      // Another token was clicked, or the browser cannot play: the player says so.
      if (!(error instanceof DOMException)) throw error;
    }
  }

  #watch() {
    if (this.#audio.paused) return;
    if (this.#audio.currentTime >= this.#end) this.#audio.pause();
    else requestAnimationFrame(() => this.#watch());
  }
}
