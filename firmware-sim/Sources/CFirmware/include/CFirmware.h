#ifndef HOLDFAST_CFIRMWARE_H
#define HOLDFAST_CFIRMWARE_H

#include <stdint.h>

/// Where the device lies: not on the stack. Aligned to 8 bytes.
uint8_t *_Nonnull firmware_memory(void);

#define FIRMWARE_BYTE_COUNT 23296

#endif
