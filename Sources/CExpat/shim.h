#ifndef HOLDFAST_CEXPAT_SHIM_H
#define HOLDFAST_CEXPAT_SHIM_H

#include <expat.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

// Documents contain keys, so memory is wiped before the parser frees it. The barrier keeps the compiler from removing the writes.

static inline void holdfast_free_wiped(void *bytes) {
  if (bytes == NULL) return;
  memset(bytes, 0, malloc_usable_size(bytes));
  __asm__ volatile("" : : "r"(bytes) : "memory");
  free(bytes);
}

static inline void *holdfast_allocate(size_t byte_count) { return malloc(byte_count); }

static inline void *holdfast_reallocate_wiped(void *bytes, size_t byte_count) {
  if (bytes == NULL) return malloc(byte_count);
  void *moved = malloc(byte_count);
  if (moved == NULL) return NULL;
  size_t had = malloc_usable_size(bytes);
  memcpy(moved, bytes, had < byte_count ? had : byte_count);
  holdfast_free_wiped(bytes);
  return moved;
}

/// Creates a parser that separates a namespace from a name by a newline, which no URI contains.
static inline XML_Parser holdfast_xml_parser(void) {
  static const XML_Memory_Handling_Suite memory = {
      holdfast_allocate, holdfast_reallocate_wiped, holdfast_free_wiped};
  return XML_ParserCreate_MM(NULL, &memory, "\n");
}

#endif
