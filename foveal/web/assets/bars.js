// The attention of one step as bars, one for each input; a bar is a slider.

import {briefly, named, number, shown} from "./text.js";
import {element, fit, reachable, rove, say, share} from "./dom.js";

const STEPS = {ArrowUp: 0.05, ArrowDown: -0.05, PageUp: 0.25, PageDown: -0.25};

function bar() {
  const made = element(
    "div",
    "bar",
    element("span", "figure"),
    element("div", "track", element("div", "level")),
    element("bdi", "token"),
  );
  made.tabIndex = -1;
  return made;
}

export class Bars {
  #root;
  #changed;
  #weights = [];
  #forcible = false;
  #dragged = null;

  /** `changed(place, value)` hears of a weight that is wanted. */
  constructor(root, {changed, lit}) {
    this.#root = root;
    this.#changed = changed;
    rove(root, () => Array.from(root.children));
    root.addEventListener("keydown", (event) => this.#key(event));
    root.addEventListener("pointerdown", (event) => this.#down(event));
    root.addEventListener("pointermove", (event) => this.#dragged !== null && this.#move(event));
    for (const end of ["pointerup", "pointercancel"]) {
      root.addEventListener(end, () => (this.#dragged = null));
    }
    const place = (event) => Array.from(root.children).indexOf(event.target.closest(".bar"));
    root.addEventListener("focusin", (event) => lit(place(event)));
    root.addEventListener("focusout", () => lit(null));
  }

  show(sources, weights, forcible, direction) {
    this.#weights = weights;
    this.#forcible = forcible;
    this.#root.dir = direction;
    fit(this.#root, weights, bar, (made, weight, n) => {
      share(made.children[1].firstElementChild, weight);
      say(made.children[0], briefly(weight));
      say(made.children[2], sources[n] === "" ? "∅" : shown(sources[n]));
      made.setAttribute("role", forcible ? "slider" : "img");
      made.setAttribute("aria-label", `weight of ${named(sources[n])}`);
      made.title = `${shown(sources[n])}: ${number(weight)}`;
      if (!forcible) {
        made.setAttribute("aria-label", `weight of ${named(sources[n])}: ${number(weight)}`);
        return;
      }
      made.setAttribute("aria-orientation", "vertical");
      made.setAttribute("aria-valuemin", "0");
      made.setAttribute("aria-valuemax", "1");
      made.setAttribute("aria-valuenow", weight.toFixed(4));
      made.setAttribute("aria-valuetext", number(weight));
    });
    reachable(Array.from(this.#root.children));
  }

  #key(event) {
    const place = Array.from(this.#root.children).indexOf(event.target);
    if (!this.#forcible || place < 0) return;
    if (event.key in STEPS) this.#changed(place, this.#weights[place] + STEPS[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.#changed(place, 1);
    else if (event.key === "Delete" || event.key === "Backspace") this.#changed(place, 0);
    else return;
    event.preventDefault();
  }

  #down(event) {
    const made = event.target.closest(".bar");
    if (!made || !this.#forcible || event.button !== 0) return;
    this.#dragged = Array.from(this.#root.children).indexOf(made);
    this.#root.setPointerCapture(event.pointerId);
    made.focus();
    event.preventDefault();
    this.#move(event);
  }

  #move(event) {
    const track = this.#root.children[this.#dragged]?.children[1];
    if (!track) return;
    const box = track.getBoundingClientRect();
    this.#changed(this.#dragged, (box.bottom - event.clientY) / box.height);
  }
}
