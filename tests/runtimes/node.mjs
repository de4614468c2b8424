/** `node node.mjs < request.json > answer.json`: a request names a function and its arguments. */

import {readFileSync} from "node:fs";

const {module, name, given} = JSON.parse(readFileSync(0, "utf8"));
const found = await (await import(module))[name](...given);
process.stdout.write(JSON.stringify(found));
