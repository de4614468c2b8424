// The page: an input that all runs read, a panel for each, and what they say compared.

import {Refused, runs} from "./asking.js";
import {element, fit, say} from "./dom.js";
import {Panel} from "./panel.js";
import {number} from "./text.js";

const QUIET = 600; // milliseconds without a key before an answer is read out
const MOST_BYTES = 6e6; // of a file, as the server takes it

const at = (name) => document.getElementById(name);
const panels = [];
let announcement = null;
let picture = null; // the image or recording that was dropped, as data:image/png;base64,...

function ask(since) {
  // A line break cannot be typed into a model that reads lines.
  const text = at("input").value.replace(/\s*\n\s*/g, " ");
  for (const panel of panels) panel.read(text, at("features").value, picture, since);
}

function fail(text) {
  say(at("failure"), text);
  at("failure").hidden = !text;
}

/** Ask about a file that was dropped or chosen. */
function look(file) {
  if (!file) return;
  const size = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
  if (file.size > MOST_BYTES) {
    fail(`${file.name} has ${size(file.size)}, expected at most ${size(MOST_BYTES)}. Save it smaller.`);
    return;
  }
  const since = performance.now();
  const reader = new FileReader();
  reader.addEventListener("load", () => {
    fail("");
    picture = reader.result;
    ask(since);
  });
  reader.addEventListener("error", () => fail(`${file.name} cannot be read.`));
  reader.readAsDataURL(file);
}

/** Let images or recordings be chosen, or dropped anywhere on the page. */
function takePictures(found) {
  at("picture-field").hidden = false;
  at("input-field").hidden = !found.some((run) => run.reads);
  say(at("input-label"), "Question");
  const hears = found.some((run) => run.hears);
  if (hears) {
    say(at("file-label"), "Recording");
    at("file").accept = ".wav,.flac,.ogg,audio/wav,audio/flac,audio/ogg";
  }
  const what = hears ? "a recording" : "an image";
  const press = hears ? " Click it, or press Enter, to hear what it read." : "";
  say(
    at("hint"),
    `Drop ${what} on this page, or choose one. Hover over a token, or move to it with the arrow keys, to see where it looked.${press}`,
  );
  at("file").addEventListener("change", () => look(at("file").files[0]));
  const over = (is) => document.body.classList.toggle("dropping", is);
  document.addEventListener("dragover", (event) => {
    event.preventDefault(); // or the browser would leave the page for the image
    over(true);
  });
  document.addEventListener("dragleave", (event) => event.relatedTarget ?? over(false));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    over(false);
    if (!event.dataTransfer.files.length) return;
    at("file").files = event.dataTransfer.files; // its name stands there, as if it had been chosen
    look(at("file").files[0]);
  });
}

/** Say how the answers go together, and how long the last one took. */
function answered(panel, since) {
  const tokens = panels.map((one) => one.tokens());
  const all = panels.length > 1 && tokens.every((one) => one !== null);
  panels.forEach((one, n) => one.compare(all ? tokens[1 - n] : null));
  const verdict = at("verdict");
  verdict.hidden = !all;
  if (all) {
    const [first, second] = panels.map((one) => one.data);
    const said = panels.map(
      (one) => `${one.name} \u2068${one.data.output}\u2069 (${number(one.data.confidence)})`,
    );
    const same = first.output === second.output;
    say(verdict, same ? `Both write \u2068${first.output}\u2069.` : `They differ: ${said.join(", ")}.`);
    verdict.classList.toggle("differ", !same);
  }
  if (since === null) return;
  requestAnimationFrame(() => {
    const took = performance.measure("foveal-answer", {start: since, end: performance.now()});
    say(at("latency"), `answered in ${Math.max(1, Math.round(took.duration))} ms`);
  });
  clearTimeout(announcement);
  announcement = setTimeout(announce, QUIET);
}

function announce() {
  const said = panels
    .filter((one) => one.data)
    .map((one) => {
      const who = panels.length > 1 ? `${one.name}: ` : "";
      return `${who}${one.data.output || "nothing"}, confidence ${number(one.data.confidence)}`;
    });
  say(at("announced"), said.join("; "));
}

async function start() {
  at("asking").addEventListener("submit", (event) => event.preventDefault());
  at("asking").addEventListener("input", (event) => {
    if (event.target !== at("file")) ask(event.timeStamp);
  });
  at("input").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.isComposing) event.preventDefault();
  });
  let found;
  try {
    found = await runs();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    fail(error.message);
    return;
  }
  document.title = `${found.map((run) => run.name).join(" and ")} – Foveal explorer`;
  at("features-field").hidden = !found.some((run) => run.features);
  const symbols = [...new Set(found.flatMap((run) => run.symbols))];
  fit(at("symbols"), symbols, () => element("option"), (option, one) => (option.value = one));
  for (const run of found) {
    const panel = new Panel(run, answered);
    panels.push(panel);
    at("answers").append(panel.root);
  }
  if (!at("input").value) at("input").value = found[0].example;
  const sees = found.some((run) => run.sees);
  if (sees) takePictures(found);
  at(sees ? "file" : "input").focus();
  ask(performance.now());
}

start();
