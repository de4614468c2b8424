/**
 * SHA-256 (FIPS 180-4). Browsers give the function of the platform only to pages from https, localhost or a disk; other
 * pages compute it here.
 */

const NUM_PRIMES = 64;
const BLOCK = 64; // bytes
const PRIMES = firstPrimes();
const ROUNDS = PRIMES.map((prime) => fraction(Math.cbrt(prime)));
const START = PRIMES.slice(0, 8).map((prime) => fraction(Math.sqrt(prime)));

/**
 * Compute the SHA-256 of bytes.
 *
 * @param {Uint8Array} content
 * @returns {Promise<string>} 64 hexadecimal digits
 */
export async function sha256(content) {
  const subtle = globalThis.crypto?.subtle;
  const digest = subtle === undefined ? digestOf(content) : await subtle.digest("SHA-256", content);
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Compute the SHA-256 of bytes without the platform.
 *
 * @param {Uint8Array} content
 * @returns {ArrayBuffer} 32 bytes
 */
export function digestOf(content) {
  const whole = content.length - (content.length % BLOCK);
  const rest = content.subarray(whole);
  const end = new Uint8Array(rest.length < BLOCK - 8 ? BLOCK : 2 * BLOCK);
  end.set(rest);
  end[rest.length] = 0x80;
  new DataView(end.buffer).setBigUint64(end.length - 8, BigInt(content.length) * 8n);
  const hash = Uint32Array.from(START);
  for (const part of [content.subarray(0, whole), end]) {
    const view = new DataView(part.buffer, part.byteOffset, part.byteLength);
    for (let at = 0; at < part.length; at += BLOCK) update(hash, view, at);
  }
  const digest = new DataView(new ArrayBuffer(32));
  hash.forEach((word, number) => digest.setUint32(4 * number, word));
  return digest.buffer;
}

function update(hash, view, start) {
  const words = new Uint32Array(NUM_PRIMES);
  for (let t = 0; t < NUM_PRIMES; t++) {
    if (t < 16) words[t] = view.getUint32(start + 4 * t);
    else {
      const [x, y] = [words[t - 15], words[t - 2]];
      const near = turned(x, 7) ^ turned(x, 18) ^ (x >>> 3);
      const far = turned(y, 17) ^ turned(y, 19) ^ (y >>> 10);
      words[t] = words[t - 16] + near + words[t - 7] + far;
    }
  }
  let [a, b, c, d, e, f, g, h] = hash;
  for (let t = 0; t < NUM_PRIMES; t++) {
    const first = h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + ROUNDS[t] + words[t];
    const second = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((value, number) => (hash[number] += value));
}

function turned(word, bits) {
  return (word >>> bits) | (word << (32 - bits));
}

/** The first 32 bits after the point. */
function fraction(value) {
  return Math.floor((value % 1) * 2 ** 32);
}

function firstPrimes() {
  const found = [];
  for (let n = 2; found.length < NUM_PRIMES; n++) if (found.every((prime) => n % prime)) found.push(n);
  return found;
}
