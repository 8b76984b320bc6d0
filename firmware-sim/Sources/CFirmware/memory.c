#include "CFirmware.h"

static _Alignas(8) uint8_t memory[FIRMWARE_BYTE_COUNT];

uint8_t *firmware_memory(void) { return memory; }
