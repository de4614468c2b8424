#!/usr/bin/env node
/**
 * `foveal-run FOLDER`: answer every line of the standard input.
 *
 *     source <TAB> rank <TAB> output <TAB> score <TAB> confidence
 *
 * A model that reads features takes them from the second column.
 */

import {parseArgs} from "node:util";

import {ExportedModelError, load} from "./node.mjs";

const AT_ONCE = 1024; // lines: enough to fill batches, few enough that the first answers appear soon
const WRONG_USE = 2;
const USAGE = `usage: foveal-run FOLDER [options] < words.txt

Answer every line of the standard input with an exported model.

  --nbest N          answers for each line, best first (default: 1)
  --beam-size N      1 is greedy search (default: of the model)
  --format tsv|jsonl
  --attention        with --format jsonl
  --engine onnx|plain
  --self-test        compare with the answers stored at export
`;

const OPTIONS = {
  nbest: {type: "string", default: "1"},
  "beam-size": {type: "string"},
  format: {type: "string", default: "tsv"},
  attention: {type: "boolean", default: false},
  engine: {type: "string", default: "onnx"},
  "self-test": {type: "boolean", default: false},
  help: {type: "boolean", default: false},
};

async function main() {
  const {values, positionals} = given();
  if (values.help) return write(USAGE);
  const model = await load(positionals[0], {engine: values.engine});
  if (values["self-test"]) {
    return write(`${positionals[0]}: ${await model.selfTest()} answers are as expected\n`);
  }
  const options = {nbest: Number(values.nbest), attention: values.attention};
  if (values["beam-size"] !== undefined) options.beamSize = Number(values["beam-size"]);
  let batch = [];
  const answer = async () => {
    const answers = await model.predict(batch, options);
    const lines = answers.flatMap((each, number) => linesOf(batch[number], each, values.format));
    batch = [];
    if (lines.length) await write(`${lines.join("\n")}\n`);
  };
  for await (const line of lines(process.stdin)) {
    const [text, features = ""] = line.split("\t");
    batch.push({text, features});
    if (batch.length === AT_ONCE) await answer();
  }
  await answer();
}

function given() {
  try {
    const found = parseArgs({options: OPTIONS, allowPositionals: true});
    if (found.positionals.length !== 1 && !found.values.help) throw new Error("expected one folder");
    if (!["tsv", "jsonl"].includes(found.values.format)) throw new Error("--format: expected tsv or jsonl");
    return found;
  } catch (error) {
    throw new ExportedModelError(`${error.message}. See foveal-run --help.`);
  }
}

/** Lines end with \n or \r\n only, as in Python; the lines of node:readline also end at other characters. */
async function* lines(stream) {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream) {
    const found = (rest + decoder.decode(chunk, {stream: true})).split("\n");
    rest = found.pop();
    for (const line of found) yield line.replace(/\r+$/, "");
  }
  rest += decoder.decode();
  if (rest) yield rest.replace(/\r+$/, "");
}

function linesOf({text}, answer, format) {
  if (format === "tsv") {
    return answer.nbest.map(({output, score, confidence}, rank) =>
      [text, rank + 1, output, score.toFixed(4), confidence.toFixed(4)].join("\t"),
    );
  }
  const {output, score, confidence, nbest, tokenProbabilities, attention} = answer;
  const data = {source: text, output, score, confidence, nbest, token_probabilities: tokenProbabilities};
  return [JSON.stringify(attention === null ? data : {...data, attention})];
}

function write(text) {
  return new Promise((resolve) => process.stdout.write(text, () => resolve()));
}

process.stdout.on("error", (error) => process.exit(error.code === "EPIPE" ? 0 : WRONG_USE));
try {
  await main();
} catch (error) {
  if (!(error instanceof ExportedModelError)) throw error;
  process.stderr.write(`foveal-run: ${error.message}\n`);
  process.exitCode = WRONG_USE;
}
