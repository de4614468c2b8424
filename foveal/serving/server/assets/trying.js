// The page of the server: one of its models is asked, and shows what it looked at. The panel and all in it
// are the explorer's.

import {authorize, Refused, runs} from "./asking.js";
import {element, fit, say} from "./dom.js";
import {Panel} from "./panel.js";
import {number} from "./text.js";

const QUIET = 600; // milliseconds without a key before an answer is read out

const at = (name) => document.getElementById(name);
let panel = null;
let found = [];
let announcement = null;

function ask(since) {
  // A line break cannot be typed into a model that reads lines.
  panel.read(at("input").value.replace(/\s*\n\s*/g, " "), at("features").value, null, since);
}

function answered(one, since) {
  if (since === null) return;
  requestAnimationFrame(() => {
    const took = Math.max(1, Math.round(performance.now() - since));
    say(at("latency"), `answered in ${took} ms`);
  });
  clearTimeout(announcement);
  announcement = setTimeout(() => {
    if (!one.data) return;
    const text = `${one.data.output || "nothing"}, confidence ${number(one.data.confidence)}`;
    say(at("announced"), text);
  }, QUIET);
}

/** Ask another model, with its own example unless something was typed. */
function choose(name, typed) {
  const run = found.find((one) => one.name === name);
  panel = new Panel(run, answered);
  at("answers").replaceChildren(panel.root);
  at("features-field").hidden = !run.features;
  fit(at("symbols"), run.symbols, () => element("option"), (option, one) => (option.value = one));
  document.title = `${run.name} – Foveal`;
  if (!typed) at("input").value = run.example;
  ask(performance.now());
}

function fail(error) {
  if (!(error instanceof Refused)) throw error;
  at("entering").hidden = error.status !== 401;
  at("asking").hidden = true;
  say(at("failure"), error.message);
  at("failure").hidden = false;
}

async function start() {
  try {
    found = await runs();
  } catch (error) {
    fail(error);
    return;
  }
  for (const name of ["entering", "failure"]) at(name).hidden = true;
  at("asking").hidden = false;
  fit(at("model"), found, () => element("option"), (option, run) => {
    option.value = run.name;
    say(option, run.name);
  });
  choose(found[0].name, false);
  at("input").focus();
}

let typed = false;
at("asking").addEventListener("submit", (event) => event.preventDefault());
at("model").addEventListener("change", () => choose(at("model").value, typed));
for (const name of ["input", "features"]) {
  at(name).addEventListener("input", (event) => {
    typed = at("input").value !== "";
    ask(event.timeStamp);
  });
}
at("input").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.isComposing) event.preventDefault();
});
at("entering").addEventListener("submit", (event) => {
  event.preventDefault();
  authorize(at("token").value);
  start();
});
start();
