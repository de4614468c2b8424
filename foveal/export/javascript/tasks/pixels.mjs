/**
 * Prepare decoded pixels as the library does: trim, scale by ink, shrink, put on white, gray or color, darken.
 *
 * The arithmetic is that of Pillow, which the library uses: 8 bits between the steps, and weights of scaling in fixed
 * point. An image with alpha is put on white before it is scaled, not after.
 */

const SPECK = 24; // maximum difference within a margin
const RIM = 2; // pixels of the margin to keep
const GRAY = [19595, 38470, 7471]; // of red, green and blue, in 1/65536
const FIXED = 2 ** 22; // weights of scaling
const REDUCING_GAP = 3;

/**
 * An image as one plane of bytes for each channel.
 *
 * @typedef {{width: number, height: number, planes: Uint8Array[]}} Planes
 */

/**
 * Prepare an image.
 *
 * @param {import("./captions.mjs").Pixels} pixels
 * @param {{numChannels: number, height: number, width: number, trim: boolean, ink: number | null}} settings
 * @returns {Planes}
 */
export function preparedPixels(pixels, settings) {
  const whole = onWhite(pixels);
  const image = settings.trim ? trimmed(whole) : whole;
  const scale = settings.ink === null ? 1 : Math.min(1, inkOf(image) / settings.ink);
  const shrunk = shrunkTo(image, settings.width, settings.height, scale);
  const converted = settings.numChannels === 1 ? gray(shrunk) : inColor(shrunk);
  return settings.ink === null ? converted : darkened(converted);
}

/** Planes of an image on a white background. */
function onWhite({data, width, height, channels}) {
  const size = width * height;
  const numPlanes = channels === 1 ? 1 : 3;
  const planes = Array.from({length: numPlanes}, () => new Uint8Array(size));
  planes.forEach((plane, channel) => {
    for (let at = 0; at < size; at++) {
      const value = data[at * channels + channel];
      plane[at] = channels === 4 ? blended(value, data[at * channels + 3]) : value;
    }
  });
  return {width, height, planes};
}

/** A value over white, with the integer arithmetic of Pillow's alpha_composite. */
function blended(value, alpha) {
  const sum = (value * alpha + 255 * (255 - alpha)) * 128 + (0x80 << 7);
  return ((sum >> 8) + sum) >> 8 >> 7;
}

/** Crop to the part that differs from the color of the first pixel, with a small margin. */
function trimmed(image) {
  const {width, height, planes} = image;
  let [left, top, right, bottom] = [width, height, 0, 0];
  for (let at = 0; at < width * height; at++) {
    if (!planes.some((plane) => Math.abs(plane[at] - plane[0]) > SPECK)) continue;
    const [x, y] = [at % width, Math.floor(at / width)];
    left = Math.min(left, x);
    right = Math.max(right, x + 1);
    top = Math.min(top, y);
    bottom = Math.max(bottom, y + 1);
  }
  if (right === 0) return image;
  [left, top] = [Math.max(0, left - RIM), Math.max(0, top - RIM)];
  [right, bottom] = [Math.min(width, right + RIM), Math.min(height, bottom + RIM)];
  const size = {width: right - left, height: bottom - top};
  const cropped = planes.map((plane) =>
    Uint8Array.from({length: size.width * size.height}, (_, at) => {
      const [x, y] = [at % size.width, Math.floor(at / size.width)];
      return plane[(top + y) * width + left + x];
    }),
  );
  return {...size, planes: cropped};
}

/** The darkness of an image, from 0 to 1. */
function inkOf(image) {
  const [plane] = gray(image).planes;
  return 1 - plane.reduce((sum, value) => sum + value, 0) / plane.length / 255;
}

function gray({width, height, planes}) {
  if (planes.length === 1) return {width, height, planes};
  const mixed = Uint8Array.from(planes[0], (_, at) => {
    const sum = planes.reduce((total, plane, channel) => total + GRAY[channel] * plane[at], 0);
    return (sum + 0x8000) >> 16;
  });
  return {width, height, planes: [mixed]};
}

function inColor(image) {
  return image.planes.length === 3 ? image : {...image, planes: [0, 1, 2].map(() => image.planes[0])};
}

/** Stretch the contrast to make the darkest pixel black, because downscaling turns thin lines light gray. */
function darkened(image) {
  const least = gray(image).planes[0].reduce((a, b) => Math.min(a, b), 255);
  const factor = Math.max(1, 255 - least);
  const table = Uint8Array.from({length: 256}, (_, value) =>
    roundedToEven(255 - Math.min(255, ((255 - value) * 255) / factor)),
  );
  return {...image, planes: image.planes.map((plane) => plane.map((value) => table[value]))};
}

/** Scale an image by `scale`, to at most a size, with its aspect ratio and at least one pixel on each side. */
function shrunkTo(image, mostWidth, mostHeight, scale) {
  const {width, height} = image;
  const factor = Math.min(scale, mostWidth / width, mostHeight / height);
  if (factor === 1) return image;
  const newWidth = Math.max(1, roundedToEven(width * factor));
  const newHeight = Math.max(1, roundedToEven(height * factor));
  const across = Math.trunc(width / newWidth / REDUCING_GAP) || 1;
  const down = Math.trunc(height / newHeight / REDUCING_GAP) || 1;
  const small = across > 1 || down > 1 ? reduced(image, across, down) : image;
  const horizontal = weightsOf(small.width, width / across, newWidth);
  const vertical = weightsOf(small.height, height / down, newHeight);
  const planes = small.planes.map((plane) => {
    const rows = filtered(plane, horizontal, small.height, newWidth, {step: 1, line: small.width}, newWidth, 1);
    return filtered(rows, vertical, newWidth, newHeight, {step: newWidth, line: 1}, 1, newWidth);
  });
  return {width: newWidth, height: newHeight, planes};
}

/** Average blocks of pixels; blocks at the end may be smaller. */
function reduced({width, height, planes}, across, down) {
  const [newWidth, newHeight] = [Math.ceil(width / across), Math.ceil(height / down)];
  const averaged = planes.map((plane) =>
    Uint8Array.from({length: newWidth * newHeight}, (_, at) => {
      const [left, top] = [(at % newWidth) * across, Math.floor(at / newWidth) * down];
      const [right, bottom] = [Math.min(width, left + across), Math.min(height, top + down)];
      let sum = 0;
      for (let y = top; y < bottom; y++) for (let x = left; x < right; x++) sum += plane[y * width + x];
      const count = (right - left) * (bottom - top);
      return Math.floor(((sum + Math.floor(count / 2)) * Math.floor(2 ** 24 / count)) / 2 ** 24);
    }),
  );
  return {width: newWidth, height: newHeight, planes: averaged};
}

/** The pixels and the weights of a triangle filter for each new pixel; `extent` is the length that is scaled. */
function weightsOf(size, extent, newSize) {
  const scale = extent / newSize;
  const support = Math.max(scale, 1);
  return Array.from({length: newSize}, (_, at) => {
    const center = (at + 0.5) * scale;
    const first = Math.max(0, Math.trunc(center - support + 0.5));
    const end = Math.min(size, Math.trunc(center + support + 0.5));
    const raw = Array.from({length: end - first}, (_, n) =>
      Math.max(0, 1 - Math.abs((n + first - center + 0.5) / support)),
    );
    const sum = raw.reduce((a, b) => a + b, 0);
    return {first, weights: raw.map((weight) => Math.trunc(0.5 + (weight / sum) * FIXED))};
  });
}

/** Apply weights along one axis: `numLines` lines of the source become lines of `newSize` pixels. */
function filtered(plane, weights, numLines, newSize, source, lineStep, pixelStep) {
  const found = new Uint8Array(numLines * newSize);
  for (let line = 0; line < numLines; line++) {
    weights.forEach(({first, weights: some}, at) => {
      let sum = FIXED / 2;
      some.forEach((weight, n) => (sum += weight * plane[line * source.line + (first + n) * source.step]));
      found[line * lineStep + at * pixelStep] = Math.min(255, Math.floor(sum / FIXED));
    });
  }
  return found;
}

function roundedToEven(value) {
  const floor = Math.floor(value);
  if (value - floor !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}
