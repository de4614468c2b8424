/**
 * Models from an image to a text: prepare and pad the image, search in the graph, calibrate, decode.
 *
 *     value = (byte / 255 - mean) / std,   with mean 1 and std -1: 0 for white and 1 for black
 *
 * An image is padded with 0 on the right and at the bottom, to a size that depends only on its own size. The graph gets the
 * height and the width of each image, and gives the weights of the cells of its grid row by row.
 *
 * Axes: B images, C channels, h and w height and width in pixels.
 */

import {ExportedModelError} from "../errors.mjs";
import {tokenizerOf} from "../text/tokenizer.mjs";
import {tokensOf} from "../text/vocabulary.mjs";
import {calibrated, scalingsOf} from "./calibration.mjs";
import {imageSize} from "./headers.mjs";
import {preparedPixels} from "./pixels.mjs";
import {lengthsOf, limitOf, searchInputs, searchOf} from "./search.mjs";
import {paddedPixels} from "./sizes.mjs";
import {rowOf, written} from "./writing.mjs";

const INLINE = /^data:[^,]*;base64,/; // begins the content of a file, written as a text
const MOST_PIXELS = 2 ** 28;
const MOST_SIDE = 65_535;
const MOST_CELL = 4096;
const SHOWN = 40;

/**
 * Decoded pixels, row by row, with 8 bits for each channel: 1 gray, 3 red, green, blue, 4 with alpha.
 *
 * @typedef {{data: ArrayLike<number>, width: number, height: number, channels: 1 | 3 | 4}} Pixels
 */

/** @typedef {Pixels | Uint8Array} Image decoded pixels, or the content of an image file */

/** @typedef {(content: Uint8Array) => Promise<Pixels>} Decode reads an image file */

/** An exported model that writes a text for an image. */
export class Captioner {
  #image;
  #decode;
  #target;
  #tokens;
  #lengths;
  #scalings;
  #engine;

  /**
   * @param {import("../fields.mjs").Fields} settings content of `model.json`
   * @param {import("../fields.mjs").Fields} vocabulary content of `vocabulary.json`
   * @param {import("../engine.mjs").AnyEngine} engine the graph of the search
   * @param {Decode | undefined} decode reads image files
   */
  constructor(settings, vocabulary, engine, decode) {
    this.#image = imageSettings(settings.at("image"));
    this.#decode = decode;
    this.#target = tokenizerOf(settings.at("target"));
    this.#tokens = vocabulary.texts("target");
    this.#lengths = lengthsOf(settings.at("lengths"));
    this.#scalings = scalingsOf(settings);
    this.#engine = engine;
    /** The default settings. */
    this.search = searchOf(settings.at("prediction"));
  }

  /**
   * Read an image: decoded pixels, the content of its file, or a data URL as a text.
   *
   * @param {{text: string, image: Image | null}} source
   * @param {import("./search.mjs").Search} search
   */
  async prepared({text, image}, search) {
    const given = image ?? inlineContent(text);
    const pixels = given instanceof Uint8Array ? await this.#decoded(given) : given;
    this.#check(pixels.width, pixels.height);
    const {width, height, channels, data} = pixels;
    if (![1, 3, 4].includes(channels) || data?.length !== width * height * channels) {
      throw new ExportedModelError(
        `the image: expected 1, 3 or 4 channels and width * height * channels bytes, got ${channels} channels and ` +
          `${data?.length} bytes. Pass {data, width, height, channels}.`,
      );
    }
    return {pixels: preparedPixels(pixels, this.#image), limit: limitOf(0, this.#lengths, search)};
  }

  /** @returns {number[]} the padded numbers of rows and columns of the grid */
  shape({pixels}) {
    const [height, width] = this.#padded(pixels);
    return [height / this.#image.down, width / this.#image.right];
  }

  /** @returns {number[]} no ids */
  encoded() {
    return [];
  }

  /**
   * Write texts for images of one padded size.
   *
   * @param {{pixels: import("./pixels.mjs").Planes, limit: number}[]} prepared
   * @param {import("./search.mjs").Search} search
   * @param {boolean} attention whether to return the attention
   * @returns {Promise<import("./writing.mjs").Answer[]>}
   */
  async answer(prepared, search, attention) {
    const limits = prepared.map(({limit}) => limit);
    const found = await this.#engine.run({...this.#inputs(prepared), ...searchInputs(limits, search)});
    return prepared.map(({limit, pixels}, item) => {
      const confidences = calibrated(this.#scalings, rowOf(found.totals.data, item, search.beamSize));
      const decode = (ids) => tokensOf(ids, this.#tokens);
      const writing = {limit, places: this.#places(pixels), decode, join: this.#target.decode};
      return written(found, item, confidences, writing, search.nbest, attention);
    });
  }

  async #decoded(content) {
    const {maxBytes} = this.#image;
    if (content.length > maxBytes) {
      throw new ExportedModelError(
        `the image: larger than ${maxBytes} bytes, the maximum of the model. Reduce the image.`,
      );
    }
    const size = imageSize(content);
    this.#check(size.width, size.height);
    if (this.#decode === undefined) {
      throw new ExportedModelError(
        "the image: Node.js has no decoder of image files, got the content of one. Pass decoded pixels as " +
          "{image: {data, width, height, channels}}, or a decoder: load(folder, {decode}).",
      );
    }
    try {
      return await this.#decode(content);
    } catch (error) {
      throw new ExportedModelError(
        `the image is damaged (${String(error.message ?? error).slice(0, 120)}). Download it again, or remove it.`,
      );
    }
  }

  #check(width, height) {
    const {maxPixels} = this.#image;
    const isSide = (side) => Number.isInteger(side) && side >= 1 && side <= MOST_SIDE;
    if (isSide(width) && isSide(height) && width * height <= maxPixels) return;
    throw new ExportedModelError(
      `the image: ${width} x ${height} pixels, expected sides from 1 to ${MOST_SIDE} and at most ${maxPixels} ` +
        "pixels. Resize it.",
    );
  }

  #inputs(prepared) {
    const [height, width] = this.#padded(prepared[0].pixels);
    const {numChannels, mean, std} = this.#image;
    // As float32 computes it for each of the 256 values.
    const values = Float32Array.from({length: 256}, (_, byte) =>
      Math.fround(Math.fround(Math.fround(byte / 255) - mean) / std),
    );
    const data = new Float32Array(prepared.length * numChannels * height * width);
    prepared.forEach(({pixels}, item) => {
      pixels.planes.forEach((plane, channel) => {
        for (let row = 0; row < pixels.height; row++) {
          const start = ((item * numChannels + channel) * height + row) * width;
          for (let column = 0; column < pixels.width; column++) {
            data[start + column] = values[plane[row * pixels.width + column]];
          }
        }
      });
    });
    const sizes = prepared.flatMap(({pixels}) => [pixels.height, pixels.width]);
    return {
      images: {type: "float32", dims: [prepared.length, numChannels, height, width], data},
      sizes: {type: "int64", dims: [prepared.length, 2], data: sizes},
    };
  }

  #padded({height, width}) {
    return [paddedPixels(height, this.#image.down), paddedPixels(width, this.#image.right)];
  }

  /** The row and the column of each cell, counted from 1. */
  #places({height, width}) {
    const [rows, columns] = [Math.ceil(height / this.#image.down), Math.ceil(width / this.#image.right)];
    return Array.from({length: rows * columns}, (_, cell) => `${Math.floor(cell / columns) + 1},${(cell % columns) + 1}`);
  }
}

function imageSettings(settings) {
  const [down, right] = settings.numbers("cell", 2);
  if (!(isCell(down) && isCell(right))) {
    throw new ExportedModelError(
      `image.cell: expected whole numbers from 1 to ${MOST_CELL}, got ${down} and ${right}. Export the model again.`,
    );
  }
  return {
    numChannels: settings.integer("num_channels", 1, 3),
    height: settings.integer("height", 1, MOST_SIDE),
    width: settings.integer("width", 1, MOST_SIDE),
    trim: settings.boolean("trim"),
    ink: settings.isNull("ink") ? null : settings.number("ink"),
    maxPixels: settings.integer("max_pixels", 1, MOST_PIXELS),
    maxBytes: settings.integer("max_bytes", 1, 2 ** 31 - 1),
    mean: Math.fround(settings.number("mean")),
    std: Math.fround(settings.number("std")),
    down,
    right,
  };
}

function isCell(size) {
  return Number.isInteger(size) && size >= 1 && size <= MOST_CELL;
}

function inlineContent(text) {
  const head = INLINE.exec(text);
  try {
    if (head) return Uint8Array.from(atob(text.slice(head[0].length)), (character) => character.charCodeAt(0));
  } catch {
    // Not base64: refused below.
  }
  throw new ExportedModelError(
    `an image must be {image: pixels}, {image: content of a file} or data:image/png;base64, followed by its bytes in ` +
      `base64, got ${JSON.stringify(text.slice(0, SHOWN))}. Pass {image: ...}.`,
  );
}
