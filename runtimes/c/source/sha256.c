#include "sha256.h"

#include <string.h>

enum { BLOCK = 64, ROUNDS = 64, LENGTH_SIZE = 8 };

static const uint32_t constants[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turned(uint32_t value, int bits) { return value >> bits | value << (32 - bits); }

static void mix(uint32_t state[8], const uint8_t *block) {
    uint32_t words[ROUNDS];
    for (int t = 0; t < 16; t++) {
        words[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 | (uint32_t)block[4 * t + 2] << 8 |
                   block[4 * t + 3];
    }
    for (int t = 16; t < ROUNDS; t++) {
        uint32_t a = words[t - 15], b = words[t - 2];
        words[t] = words[t - 16] + words[t - 7] + (turned(a, 7) ^ turned(a, 18) ^ a >> 3) +
                   (turned(b, 17) ^ turned(b, 19) ^ b >> 10);
    }
    uint32_t s[8];
    memcpy(s, state, sizeof s);
    for (int t = 0; t < ROUNDS; t++) {
        uint32_t first = s[7] + (turned(s[4], 6) ^ turned(s[4], 11) ^ turned(s[4], 25)) +
                         ((s[4] & s[5]) ^ (~s[4] & s[6])) + constants[t] + words[t];
        uint32_t second = (turned(s[0], 2) ^ turned(s[0], 13) ^ turned(s[0], 22)) +
                          ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += first;
        s[0] = first + second;
    }
    for (int i = 0; i < 8; i++) {
        state[i] += s[i];
    }
}

void sha256(const uint8_t *content, size_t size, uint8_t digest[SHA256_SIZE]) {
    uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    size_t whole = size / BLOCK * BLOCK, left = size - whole;
    for (size_t at = 0; at < whole; at += BLOCK) {
        mix(state, content + at);
    }
    uint8_t last[2 * BLOCK] = {0};
    if (left) {
        memcpy(last, content + whole, left);
    }
    last[left] = 0x80;
    size_t end = left + 1 + LENGTH_SIZE <= BLOCK ? BLOCK : 2 * BLOCK;
    uint64_t bits = (uint64_t)size * 8;
    for (int i = 0; i < LENGTH_SIZE; i++) {
        last[end - 1 - (size_t)i] = (uint8_t)(bits >> 8 * i);
    }
    for (size_t at = 0; at < end; at += BLOCK) {
        mix(state, last + at);
    }
    for (int i = 0; i < SHA256_SIZE; i++) {
        digest[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
    }
}
