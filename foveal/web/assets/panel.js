// One run on the page: its answer, what it looked at, and what it would do if it had looked or written
// otherwise.

import {Asker, Refused} from "./asking.js";
import {Bars} from "./bars.js";
import {differing} from "./differing.js";
import {element, fit, say, share} from "./dom.js";
import {MOST_CELLS, WeightsMap} from "./map.js";
import {Picture} from "./picture.js";
import {Playback} from "./playback.js";
import {Strips} from "./strips.js";
import {direction, named, number, shown} from "./text.js";
import {alone, asked, look, reweighted, write} from "./what_if.js";

const FORCING = "Drag a bar, or press up and down on it, to force another weight.";

export class Panel {
  #run;
  #answered;
  #asker = new Asker();
  #text = "";
  #features = "";
  #shown = null; // the picture that is asked about
  #changes = [];
  #data = null; // the answer that is shown
  #own = null; // the answer without changes
  #other = null; // the symbols of the run beside this one
  #selected = 0;
  #at;
  #strips;
  #bars;
  #map;
  #picture;
  #playback;

  /** `answered(panel, since)` hears of every answer that is shown. */
  constructor(run, answered) {
    this.#run = run;
    this.#answered = answered;
    this.root = document.getElementById("panel").content.cloneNode(true).firstElementChild;
    this.#at = (selector) => this.root.querySelector(selector);
    say(this.#at(".name"), run.name);
    this.root.setAttribute("aria-label", `run ${run.name}`);
    const lit = (step, place) => this.#light(step, place);
    const opened = (step) => {
      this.#open(step);
      this.#playback.play(this.#data.steps[step].weights);
    };
    this.#strips = new Strips(this.root, {lit, opened});
    this.#bars = new Bars(this.#at(".bars"), {
      changed: (place, value) =>
        this.#look(this.#selected, place, (weights) =>
          reweighted(weights, place, value, this.#data.exclusive),
        ),
      lit: (place) => this.#light(place === null ? null : this.#selected, place),
    });
    this.#picture = new Picture(this.#at(".picture"));
    this.#playback = new Playback(this.#at(".playback"));
    this.#map = new WeightsMap(this.#at(".map"), {
      lit,
      forced: (step, place) => this.#look(step, place, (weights) => alone(weights, place)),
    });
    this.#at(".alternatives").addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) this.#write(button.dataset.token);
    });
    this.#at(".writing").addEventListener("submit", (event) => {
      event.preventDefault();
      const field = this.#at(".symbol");
      if (field.value) this.#write(field.value);
      field.value = "";
    });
    this.#at(".undo").addEventListener("click", () => this.#undo(this.#changes.slice(0, -1)));
    this.#at(".reset").addEventListener("click", () => this.#undo([]));
    this.#at(".writing").hidden = !run.forcible;
  }

  /** The answer that is shown, or null. */
  get data() {
    return this.#data;
  }

  get name() {
    return this.#run.name;
  }

  /** A new input: whatever was forced belonged to the old one. */
  read(text, features, picture, since) {
    this.#text = this.#run.reads ? text : "";
    this.#features = this.#run.features ? features : "";
    this.#shown = this.#run.sees ? picture : null;
    this.#changes = [];
    const whole = (text || !this.#run.reads) && (picture || !this.#run.sees);
    if (whole) this.#ask(since);
    else this.#clear();
  }

  #clear() {
    this.#asker.drop();
    this.#data = this.#own = null;
    this.root.setAttribute("aria-busy", "false");
    this.#at(".body").hidden = true;
    this.#at(".error").hidden = true;
    this.#answered(this, null);
  }

  async #ask(since) {
    this.root.setAttribute("aria-busy", "true");
    const question = {run: this.#run.name, input: this.#text, ...asked(this.#changes)};
    if (this.#features) question.features = this.#features;
    if (this.#shown) question.picture = this.#shown;
    const changes = this.#changes;
    try {
      const data = await this.#asker.ask(question);
      if (data === null) return;
      if (!changes.length) this.#own = data;
      this.#data = data;
      this.#selected = Math.min(this.#selected, Math.max(0, data.steps.length - 1));
      this.#at(".error").hidden = true;
      this.#show();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.#refuse(error.message, changes);
    }
    this.root.setAttribute("aria-busy", "false");
    this.#answered(this, since);
  }

  /** Say why there is no answer. A change that was refused is taken back. */
  #refuse(text, changes) {
    const line = this.#at(".error");
    say(line, text);
    line.hidden = false;
    if (changes.length && this.#data) {
      this.#changes = changes.slice(0, -1);
      this.#show();
    } else {
      this.#data = this.#own = null;
      this.#at(".body").hidden = true;
    }
  }

  // What if.

  #before(step) {
    return this.#data.steps.slice(0, step).map((one) => one.token);
  }

  /** Read at `step` with what `changed` makes of its weights; it was `place` that was touched. */
  #look(step, place, changed) {
    const weights = this.#data.steps[step]?.weights;
    if (!weights || !this.#run.forcible) return;
    const wanted = changed(weights);
    // Seen at once: an answer may take longer than a drag goes on.
    this.#data = structuredClone(this.#data);
    Object.assign(this.#data.steps[step], {weights: wanted, forced: true});
    this.#selected = step;
    this.#changes = look(this.#changes, step, this.#before(step), wanted, place);
    this.#show();
    this.#ask(performance.now());
  }

  #write(token) {
    if (!this.#run.forcible || token === "") return;
    const step = this.#selected;
    this.#changes = write(this.#changes, step, this.#before(step), token);
    this.#ask(performance.now());
  }

  #undo(changes) {
    this.#changes = changes;
    if (changes.length) this.#ask(performance.now());
    else {
      this.#asker.drop();
      this.root.setAttribute("aria-busy", "false");
      this.#data = this.#own;
      this.#at(".error").hidden = true;
      this.#show();
      this.#answered(this, null);
      this.#at(".outputs [tabindex='0']")?.focus(); // the button that was pressed has gone
    }
  }

  // What is shown.

  /** Compare with the symbols of the run beside this one; null: with none. */
  compare(other) {
    if (JSON.stringify(other) === JSON.stringify(this.#other)) return;
    this.#other = other;
    if (this.#data) this.#show();
  }

  /** The symbols of the answer. */
  tokens() {
    return this.#data?.steps.map((step) => step.token) ?? null;
  }

  #light(step, place) {
    if (!this.#data) return;
    this.#strips.light(step, place);
    this.#map.light(step, place);
    const seen = this.#data.steps[step ?? this.#selected]?.weights ?? null;
    this.#picture.light(seen, this.#at(".readout").textContent);
  }

  #open(step) {
    this.#selected = step;
    this.#show();
    this.#light(step, null);
  }

  #marks() {
    const tokens = this.tokens();
    const reference = this.#changes.length ? this.#own?.steps.map((s) => s.token) : this.#other;
    const differs = reference ? differing(tokens, reference) : [];
    const written = new Set(
      this.#changes.filter((one) => one.kind === "write").map((one) => one.step),
    );
    return this.#data.steps.map((step, n) => [
      ...(differs[n] ? ["differs"] : []),
      ...(step.forced ? ["forced"] : []),
      ...(written.has(n) ? ["written"] : []),
    ]);
  }

  #show() {
    const data = this.#data;
    this.#at(".body").hidden = false;
    say(this.#at(".text"), data.output || "(nothing)");
    say(this.#at(".confidence"), `confidence ${number(data.confidence)}`);
    say(this.#at(".score"), `score ${data.score.toFixed(3)}`);
    const how = data.attention ? `${data.attention} attention` : "no attention";
    say(this.#at(".about"), `${data.task.replace("_", " ")}, ${how}`);
    const marks = this.#marks();
    // Cells of a picture are lit where they are: no strip, bars or columns for each of them.
    this.#at(".inputs").hidden = Boolean(data.picture);
    this.#picture.show(data);
    this.#playback.show(this.#run.hears ? this.#shown : null, data.sources);
    this.#strips.show(data, this.#selected, marks);
    this.#showLegend(new Set(marks.flat()));
    this.#showChanges();
    this.#showMap();
    this.#showStep();
    this.#showBest();
    this.#light(null, null);
  }

  #showLegend(marks) {
    const whom = this.#changes.length ? "the model’s own output" : "the other run";
    const said = [
      ...(marks.has("forced") ? ["◆ attention forced"] : []),
      ...(marks.has("written") ? ["✎ written by you"] : []),
      ...(marks.has("differs") ? [`≠ differs from ${whom}`] : []),
    ];
    say(this.#at(".legend"), said.join("; "));
  }

  #showChanges() {
    const box = this.#at(".what-if");
    box.hidden = !this.#changes.length;
    if (box.hidden) return;
    const {sources} = this.#data;
    const said = this.#changes.map((one) =>
      one.kind === "write"
        ? `step ${one.step + 1} wrote “${named(one.token)}”`
        : `step ${one.step + 1} read “${named(sources[one.place])}” with weight ${number(one.weights[one.place])}`,
    );
    say(this.#at(".said"), `What if ${said.join(", and ")}?`);
    const own = this.#own?.output ?? "";
    const same = own === this.#data.output;
    say(
      this.#at(".own"),
      same ? "The output stays the same." : `The model’s own output: \u2068${own}\u2069`,
    );
  }

  #showMap() {
    const {picture, steps, sources} = this.#data;
    const has = !picture && steps.length > 0 && steps.every((step) => step.weights);
    const part = this.#at(".map-part");
    part.hidden = !has;
    if (!has) return;
    const fits = steps.length * sources.length <= MOST_CELLS;
    this.#at(".map").hidden = !fits;
    const forcing = "Stronger color means more weight. Click a cell, or press Enter on it, to make the step read only this input.";
    const plain = "Stronger color means more weight. Rows are outputs, columns are inputs.";
    const large = "Too large to draw: open one step after the other instead.";
    say(this.#at(".map-note"), fits ? (this.#run.forcible ? forcing : plain) : large);
    if (fits) this.#map.show(this.#data, this.#run.forcible, direction(sources));
  }

  #showStep() {
    const {sources, steps} = this.#data;
    const step = steps[this.#selected];
    this.#at(".step-title").hidden = !step;
    const bars = Boolean(step?.weights) && !this.#data.picture;
    this.#at(".looking").hidden = !bars;
    if (!step) return;
    say(this.#at(".step-title"), `Step ${this.#selected + 1}: ${named(step.token)}`);
    if (bars) {
      const own = this.#run.forcible ? FORCING : "";
      const sum = this.#data.exclusive ? " The weights sum to 1." : "";
      say(this.#at(".looking-note"), own + sum);
      this.#at(".bars").setAttribute("aria-label", `what step ${this.#selected + 1} reads`);
      this.#bars.show(sources, step.weights, this.#run.forcible, direction(sources));
    }
    const make = () => {
      const button = element("button", "", element("bdi", "token"), element("span", "figure"));
      button.type = "button";
      button.append(element("span", "level"));
      return element("li", "", button);
    };
    fit(this.#at(".alternatives"), step.alternatives, make, (item, one) => {
      const button = item.firstElementChild;
      button.dataset.token = one.token;
      button.disabled = !this.#run.forcible || one.token === "";
      button.setAttribute("aria-current", String(one.token === step.token));
      const verb = this.#run.forcible && one.token !== "" ? "write " : "";
      button.setAttribute("aria-label", `${verb}${named(one.token)}, ${number(one.probability)}`);
      say(button.children[0], shown(one.token));
      say(button.children[1], number(one.probability));
      share(button.children[2], one.probability);
    });
  }

  #showBest() {
    const make = () => {
      const row = element("tr", "", element("th", "", element("bdi")), element("td"), element("td"));
      row.firstElementChild.scope = "row";
      return row;
    };
    this.#at(".best-part").hidden = !this.#data.nbest.length;
    fit(this.#at(".nbest tbody"), this.#data.nbest, make, (row, one) => {
      say(row.children[0].firstElementChild, one.output || "(nothing)");
      say(row.children[1], number(one.probability));
      say(row.children[2], one.score.toFixed(3));
    });
  }
}
