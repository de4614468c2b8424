/* SHA-256 (FIPS 180-4). */
#ifndef SHA256_H
#define SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_SIZE = 32 };

void sha256(const uint8_t *content, size_t size, uint8_t digest[SHA256_SIZE]);

#endif
