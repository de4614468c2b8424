/** Copy the sources, which are a part of the Python package, to `dist`. */

import {cp, rm} from "node:fs/promises";
import {fileURLToPath} from "node:url";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));

await rm(at("dist"), {recursive: true, force: true});
await cp(at("../../foveal/export/javascript"), at("dist"), {
  recursive: true,
  filter: (path) => !path.split(/[\\/]/).includes("page"), // of single pages, which foveal export writes
});
await cp(at("../../LICENSE"), at("dist/LICENSE"));
