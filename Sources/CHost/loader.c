#define _GNU_SOURCE
#include "loader.h"

#include <link.h>
#include <unistd.h>

struct destination {
  struct holdfast_range *ranges;
  size_t capacity;
  size_t count;
  uint64_t page_mask;
};

static int append_object(struct dl_phdr_info *object, size_t size, void *context) {
  (void)size;
  struct destination *destination = context;
  for (size_t index = 0; index < object->dlpi_phnum; index++) {
    const ElfW(Phdr) *header = &object->dlpi_phdr[index];
    if (header->p_type != PT_LOAD || !(header->p_flags & PF_X) || header->p_memsz == 0) continue;
    if (destination->count < destination->capacity) {
      uint64_t start = object->dlpi_addr + header->p_vaddr;
      struct holdfast_range *range = &destination->ranges[destination->count];
      range->start = start & ~destination->page_mask;
      range->end = (start + header->p_memsz + destination->page_mask) & ~destination->page_mask;
    }
    destination->count++;
  }
  return 0;
}

size_t holdfast_executable_ranges(struct holdfast_range *ranges, size_t capacity) {
  struct destination destination = {ranges, capacity, 0, (uint64_t)sysconf(_SC_PAGESIZE) - 1};
  dl_iterate_phdr(append_object, &destination);
  return destination.count;
}
