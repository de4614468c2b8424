/** Sizes of images from the headers of their files, because an image is decoded only if its size is acceptable. */

import {ExportedModelError} from "../errors.mjs";

const PNG = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];
const JPEG = [0xff, 0xd8, 0xff];
const GIF = [0x47, 0x49, 0x46, 0x38];
const BMP = [0x42, 0x4d];
const RIFF = [0x52, 0x49, 0x46, 0x46];
const NOT_FRAMES = [0xc4, 0xc8, 0xcc]; // markers of tables between those of JPEG frames

/**
 * Return the size of an image.
 *
 * @param {Uint8Array} content of an image file
 * @returns {{width: number, height: number}} 0 x 0 if the header is damaged
 * @throws {ExportedModelError} The format is unknown.
 */
export function imageSize(content) {
  const begins = (bytes) => bytes.every((byte, at) => content[at] === byte);
  const reader = [[PNG, pngSize], [JPEG, jpegSize], [GIF, gifSize], [BMP, bmpSize], [RIFF, webpSize]].find(
    ([bytes]) => begins(bytes),
  );
  if (reader === undefined) {
    const first = Array.from(content.slice(0, 8), (byte) => byte.toString(16).padStart(2, "0")).join(" ");
    throw new ExportedModelError(
      `the image: the file is ${content.length ? `in an unknown format, beginning with ${first}` : "empty"}, ` +
        "expected PNG, JPEG, GIF, BMP or WebP. Save it as PNG or JPEG.",
    );
  }
  try {
    return reader[1](new DataView(content.buffer, content.byteOffset, content.byteLength));
  } catch (error) {
    if (error instanceof RangeError) return {width: 0, height: 0}; // the file ends in its header
    throw error;
  }
}

function pngSize(view) {
  return {width: view.getUint32(16), height: view.getUint32(20)};
}

function gifSize(view) {
  return {width: view.getUint16(6, true), height: view.getUint16(8, true)};
}

function bmpSize(view) {
  if (view.getUint32(14, true) === 12) return {width: view.getUint16(18, true), height: view.getUint16(20, true)};
  return {width: view.getInt32(18, true), height: Math.abs(view.getInt32(22, true))};
}

function jpegSize(view) {
  for (let at = 2; ; ) {
    if (view.getUint8(at) !== 0xff) throw new RangeError("no marker");
    const marker = view.getUint8(at + 1);
    const isFrame = marker >= 0xc0 && marker <= 0xcf && !NOT_FRAMES.includes(marker);
    if (isFrame) return {width: view.getUint16(at + 7), height: view.getUint16(at + 5)};
    const isFill = marker === 0xff;
    at += isFill ? 1 : 2 + view.getUint16(at + 2);
  }
}

function webpSize(view) {
  const kind = String.fromCharCode(...[12, 13, 14, 15].map((at) => view.getUint8(at)));
  const wide = (at) => view.getUint16(at, true) + (view.getUint8(at + 2) << 16) + 1;
  if (kind === "VP8X") return {width: wide(24), height: wide(27)};
  if (kind === "VP8L") {
    const bits = view.getUint32(21, true);
    return {width: (bits & 0x3fff) + 1, height: ((bits >> 14) & 0x3fff) + 1};
  }
  return {width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff};
}
