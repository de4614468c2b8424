// The picture that a run looked at, lit where a step looked. A pixel belongs to the cell whose center is
// nearest, as in the drawings of `foveal explain`.

import {element, fit, share} from "./dom.js";
import {number} from "./text.js";

/** Where the cells along a side begin and end, as shares of it. */
export function edges(cells, pitch, pixels) {
  const inner = (n) => (pitch ? Math.min(1, ((n - 0.5) * pitch + 0.5) / pixels) : n / cells);
  return Array.from({length: cells + 1}, (_, n) => (n === 0 ? 0 : n === cells ? 1 : inner(n)));
}

export class Picture {
  #root;
  #image;
  #cells;
  #layout = null;

  constructor(root) {
    this.#root = root;
    this.#image = root.querySelector("img");
    this.#cells = root.querySelector(".cells");
    // How many pixels there are is known when they are there.
    this.#image.addEventListener("load", () => this.#place());
  }

  /** Show what an answer is about; `data.picture` is null where that is a text. */
  show(data) {
    this.#root.hidden = !data.picture;
    if (!data.picture) return;
    this.#layout = data.layout;
    fit(this.#cells, data.sources, () => element("div", "cell"), () => {});
    if (this.#image.src === data.picture) this.#place();
    else this.#image.src = data.picture;
  }

  #place() {
    const {rows, columns, pitch} = this.#layout;
    const across = edges(columns, pitch?.[1], this.#image.naturalWidth);
    const down = edges(rows, pitch?.[0], this.#image.naturalHeight);
    Array.from(this.#cells.children).forEach((cell, n) => {
      const [row, column] = [Math.floor(n / columns), n % columns];
      cell.style.left = `${100 * across[column]}%`;
      cell.style.width = `${100 * (across[column + 1] - across[column])}%`;
      cell.style.top = `${100 * down[row]}%`;
      cell.style.height = `${100 * (down[row + 1] - down[row])}%`;
    });
  }

  /** Darken what has little of the weights, which may be null: then nothing is. */
  light(weights, said) {
    const most = weights ? Math.max(...weights) : 0;
    Array.from(this.#cells.children).forEach((cell, n) => {
      share(cell, most > 0 ? weights[n] / most : 1);
      cell.title = most > 0 ? number(weights[n]) : "";
    });
    this.#image.alt = said;
  }
}
