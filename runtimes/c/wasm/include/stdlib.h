/* Memory for the WebAssembly build. */
#ifndef STDLIB_H
#define STDLIB_H

#include <stddef.h>

void *calloc(size_t count, size_t size);
void free(void *memory);

#endif
