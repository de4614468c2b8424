// The symbols of output and input as two rows of buttons, and the light between them.

import {direction, briefly, named, number, reading, shown} from "./text.js";
import {element, fit, reach, reachable, rove, say, share} from "./dom.js";

function chip() {
  const button = element("button", "chip");
  button.type = "button";
  button.tabIndex = -1;
  button.append(
    element("bdi", "token"),
    element("span", "figure"),
    element("span", "figure reads"),
    element("span", "level"),
  );
  return element("li", "", button);
}

function inputChip() {
  const item = chip();
  item.querySelector(".figure").remove();
  return item;
}

export class Strips {
  #outputs;
  #inputs;
  #readout;
  #data = null;
  #selected = 0;

  /** `lit(step, place)` hears of what is pointed at (null: nothing), `opened(step)` of a step chosen. */
  constructor(root, {lit, opened}) {
    this.#outputs = root.querySelector(".outputs");
    this.#inputs = root.querySelector(".inputs");
    this.#readout = root.querySelector(".readout");
    for (const [strip, tell] of [
      [this.#outputs, (n) => lit(n, null)],
      [this.#inputs, (n) => lit(null, n)],
    ]) {
      const at = (target) => this.#chips(strip).indexOf(target.closest(".chip"));
      strip.addEventListener("pointerover", (event) => at(event.target) >= 0 && tell(at(event.target)));
      strip.addEventListener("pointerleave", () => lit(null, null));
      strip.addEventListener("focusin", (event) => tell(at(event.target)));
      strip.addEventListener("focusout", () => lit(null, null));
      rove(strip, () => this.#chips(strip));
    }
    this.#outputs.addEventListener("click", (event) => {
      const step = this.#chips(this.#outputs).indexOf(event.target.closest(".chip"));
      if (step >= 0) opened(step);
    });
  }

  #chips(strip) {
    return Array.from(strip.children, (item) => item.firstElementChild);
  }

  /** Show an answer. `marks[n]` are the classes of output n. */
  show(data, selected, marks) {
    this.#data = data;
    this.#selected = selected;
    const {steps, sources} = data;
    this.#outputs.dir = direction(steps.map((step) => step.token));
    this.#inputs.dir = direction(sources);
    fit(this.#outputs, steps, chip, (item, step, n) => {
      const button = item.firstElementChild;
      button.className = ["chip", step.token === "" ? "end" : "", ...marks[n]].join(" ");
      button.setAttribute("aria-pressed", String(n === selected));
      const said = [`step ${n + 1}, ${named(step.token)}`, `probability ${number(step.probability)}`];
      if (step.weights) said.push(reading(step.token, sources, step.weights));
      if (marks[n].includes("differs")) said.push("differs");
      if (marks[n].includes("forced")) said.push("attention forced");
      if (marks[n].includes("written")) said.push("written by you");
      button.setAttribute("aria-label", said.join("; "));
      say(button.children[0], shown(step.token));
      say(button.children[1], briefly(step.probability));
      share(button, step.probability, "--level");
    });
    fit(this.#inputs, sources, inputChip, (item, source) => {
      say(item.firstElementChild.children[0], source === "" ? "∅" : shown(source));
    });
    this.#label();
    const outputs = this.#chips(this.#outputs);
    if (outputs.includes(document.activeElement)) reach(outputs, document.activeElement);
    else reachable(outputs);
    reachable(this.#chips(this.#inputs));
    this.light(null, null);
  }

  #label() {
    const {steps, sources} = this.#data;
    this.#chips(this.#inputs).forEach((button, place) => {
      const readers = steps
        .map((step, n) => [step.weights?.[place] ?? 0, n])
        .filter(([weight]) => weight >= 0.05)
        .sort((a, b) => b[0] - a[0])
        .slice(0, 4)
        .map(([weight, n]) => `${named(steps[n].token)} ${number(weight)}`);
      const said = readers.length ? `read by ${readers.join(", ")}` : "read by none";
      button.setAttribute("aria-label", `input ${place + 1}, ${named(sources[place])}; ${said}`);
    });
  }

  /** Light what `step` reads, or what reads `place`; neither: what the selected step reads. */
  light(step, place) {
    const {steps, sources} = this.#data;
    const reader = step ?? (place === null ? this.#selected : null);
    const weights = reader === null ? null : steps[reader]?.weights;
    this.#chips(this.#outputs).forEach((button, n) => {
      const weight = reader === null ? (steps[n].weights?.[place] ?? null) : null;
      this.#lit(button, weight, button.children[2]);
      button.classList.toggle("here", n === step);
    });
    this.#chips(this.#inputs).forEach((button, n) => {
      this.#lit(button, weights ? weights[n] : null, button.children[1]);
      share(button, weights ? weights[n] : 0, "--level");
      button.classList.toggle("here", n === place);
    });
    say(this.#readout, this.#said(reader, place, steps, sources));
  }

  #lit(button, weight, figure) {
    share(button, weight ?? 0);
    button.classList.toggle("lit", weight !== null && weight >= 0.05);
    say(figure, weight === null ? "" : briefly(weight));
  }

  #said(step, place, steps, sources) {
    if (step === null) return this.#chips(this.#inputs)[place].getAttribute("aria-label");
    const one = steps[step];
    if (!one) return "";
    if (!one.weights) return `${named(one.token)}: there is no attention to show here.`;
    const how = one.forced ? " (forced)" : "";
    if (place === null) return reading(one.token, sources, one.weights) + how;
    return `${named(one.token)} reads ${named(sources[place])} ${number(one.weights[place])}${how}`;
  }
}
