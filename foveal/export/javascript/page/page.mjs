/** The page of one model: answers while you type, the best outputs, and the attention as a heat map. */

import {ExportedModelError} from "../errors.mjs";
import {Fields} from "../fields.mjs";
import {PlainEngine} from "../plain/engine.mjs";
import {checkSize, searchWith} from "../tasks/search.mjs";
import {Transducer} from "../tasks/transduction.mjs";
import {element, fit, say, share} from "../../../web/assets/dom.js";
import {WeightsMap} from "../../../web/assets/map.js";
import {direction, reading} from "../../../web/assets/text.js";

const MOST_TOKENS = 200; // of an input: longer ones would block the page for seconds
const NUM_CANDIDATES = 5;
const NUM_EXAMPLES = 6;
const LONGEST_EXAMPLE = 24;
const NUM_TESTED = 3; // examples that are compared with the stored answers when the page opens
const NEAR = 1e-4; // a difference of scores that rounding explains
const TYPING_PAUSE = 120; // milliseconds

const at = (id) => document.getElementById(id);

/** The model and the elements that show its answers. */
class Page {
  #task;
  #examples;
  #map;
  #answer = null;
  #timer = 0;
  #asked = 0;

  constructor(task, model) {
    this.#task = task;
    this.#examples = model.examples;
    const shows = (step, place) => this.#light(step, place);
    this.#map = new WeightsMap(at("map"), {lit: shows, forced: shows});
    at("features-field").hidden = model.settings.features === null;
    for (const field of [at("input"), at("features")]) {
      field.addEventListener("input", () => {
        clearTimeout(this.#timer);
        this.#timer = setTimeout(() => this.ask(), TYPING_PAUSE);
      });
    }
    at("asking").addEventListener("submit", (event) => event.preventDefault());
    at("about").textContent = aboutText(model.about);
    this.#offer();
  }

  /** Let the user type, and answer the first example. */
  open() {
    for (const id of ["input", "features"]) at(id).disabled = false;
    at("examples").hidden = !at("examples").children.length;
    return this.ask();
  }

  /** Compare some answers with those of the original model. */
  async test() {
    for (const {text, features, output, score} of this.#examples.slice(0, NUM_TESTED)) {
      const found = await this.#found(text, features);
      if (found.output === output || Math.abs(found.score - score) <= NEAR) continue;
      throw new ExportedModelError(
        `the answer to ${JSON.stringify(text)} is ${JSON.stringify(found.output)}, but it was ${JSON.stringify(output)} ` +
          "when the model was exported. Use another browser, or export the model again.",
      );
    }
  }

  /** Answer the input. */
  async ask() {
    const asked = ++this.#asked;
    const [text, features] = [line(at("input").value), at("features").value];
    at("failure").hidden = true;
    at("input").removeAttribute("aria-invalid");
    if (!text) return hideAnswer();
    try {
      const begin = performance.now();
      const found = await this.#found(text, features);
      if (asked === this.#asked) this.#show(found, performance.now() - begin);
    } catch (error) {
      if (asked === this.#asked) fail(error);
    }
  }

  async #found(text, features) {
    const nbest = Math.min(NUM_CANDIDATES, this.#task.search.beamSize);
    const search = searchWith(this.#task.search, {nbest});
    const prepared = this.#task.prepared({text, features}, search);
    checkSize(text, prepared.ids.length, MOST_TOKENS);
    const [answer] = await this.#task.answer([prepared], search, true);
    return answer;
  }

  #offer() {
    const short = this.#examples.filter(({text}) => text && [...text].length <= LONGEST_EXAMPLE).slice(0, NUM_EXAMPLES);
    for (const {text, features} of short) {
      const button = element("button", "", element("bdi", "", features ? `${text} · ${features}` : text));
      button.type = "button";
      button.addEventListener("click", () => {
        at("input").value = text;
        at("features").value = features;
        this.ask();
      });
      at("examples").append(button);
    }
    if (short.length) [at("input").value, at("features").value] = [short[0].text, short[0].features];
  }

  #show(answer, milliseconds) {
    this.#answer = answer;
    const {output, confidence, nbest, attention} = answer;
    say(at("output"), visible(output));
    say(at("confidence"), `${percent(confidence)} confident`);
    say(at("time"), `${Math.max(1, Math.round(milliseconds))} ms`);
    say(at("announced"), `${visible(output)}, ${percent(confidence)} confident`);
    at("nbest-section").hidden = false;
    fit(at("nbest"), nbest, candidateRow, showCandidate);
    at("attention-section").hidden = attention === null || !attention.targets.length;
    if (attention === null) return;
    const steps = attention.targets.map((token, step) => ({token, weights: attention.weights[step]}));
    at("map").style.setProperty("--columns", String(attention.sources.length));
    this.#map.show({sources: attention.sources, steps, best: null}, false, direction(attention.sources));
    this.#light(null, null);
  }

  /** Describe the weights of a step, or of the first one. */
  #light(step, place) {
    const attention = this.#answer?.attention;
    if (!attention?.targets.length) return;
    this.#map.light(step, place);
    const row = step ?? 0;
    say(at("readout"), reading(attention.targets[row], attention.sources, attention.weights[row]));
  }
}

function candidateRow() {
  const head = element("th", "", element("bdi"));
  head.scope = "row";
  const confidence = element("td", "", element("span"), element("span", "level"));
  return element("tr", "", head, confidence, element("td"));
}

function showCandidate(row, {output, score, confidence}) {
  const [head, sure, scored] = row.children;
  say(head.firstElementChild, visible(output));
  say(sure.firstElementChild, percent(confidence));
  share(sure.lastElementChild, confidence);
  say(scored, score.toFixed(3));
}

function visible(output) {
  return output === "" ? "(empty)" : output;
}

function percent(probability) {
  return `${(100 * probability).toFixed(1)} %`;
}

function aboutText({version, license, data}) {
  const parts = [`Exported by foveal ${version}.`];
  if (license) parts.push(`License of the weights: ${license}.`);
  return [...parts, ...data].join(" ");
}

function hideAnswer() {
  for (const id of ["output", "confidence", "time", "announced"]) say(at(id), "");
  for (const id of ["nbest-section", "attention-section"]) at(id).hidden = true;
}

function fail(error) {
  const isExpected = error instanceof ExportedModelError;
  say(at("failure"), isExpected ? error.message : `unexpected error: ${error.message}. Reload the page.`);
  at("failure").hidden = false;
  at("input").setAttribute("aria-invalid", "true");
  hideAnswer();
  at("answer").setAttribute("aria-busy", "false");
  if (!isExpected) throw error;
}

async function start() {
  try {
    const content = Uint8Array.from(atob(at("model").textContent), (character) => character.charCodeAt(0));
    const engine = await PlainEngine.open(content);
    const {settings, vocabulary} = engine.model;
    const task = new Transducer(new Fields("the model", settings), new Fields("the vocabulary", vocabulary), engine);
    const page = new Page(task, engine.model);
    await page.test();
    say(at("output"), "");
    await page.open();
    at("answer").setAttribute("aria-busy", "false");
  } catch (error) {
    fail(error);
  }
}

/** Join the lines of an input: models read single lines, and Enter ends one. */
function line(text) {
  return text.replace(/[\r\n]+$/, "").replace(/[\r\n]+/g, " ");
}

start();
