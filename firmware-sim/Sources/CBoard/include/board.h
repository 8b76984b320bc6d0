#ifndef HOLDFAST_BOARD_H
#define HOLDFAST_BOARD_H

#include <stddef.h>
#include <stdint.h>

/// Reads the device register, or the word of flash, at `address`.
static inline uint32_t board_load(uintptr_t address) { return *(volatile uint32_t *)address; }

/// Writes the device register, or the word of flash, at `address`.
static inline void board_store(uintptr_t address, uint32_t value) { *(volatile uint32_t *)address = value; }

/// Keeps interrupts out until ``board_allow_interrupts``; one that comes meanwhile still ends a wait.
static inline void board_hold_interrupts(void) { __asm__ __volatile__("cpsid i" ::: "memory"); }

/// Lets interrupts in again.
static inline void board_allow_interrupts(void) { __asm__ __volatile__("cpsie i" ::: "memory"); }

/// Sleeps until there is an interrupt, held back or not.
static inline void board_sleep(void) { __asm__ __volatile__("dsb\n\twfi" ::: "memory"); }

/// The same, for a byte from the way in. With `run --still` the clock stands still meanwhile: what a device does then repeats, however
/// long whoever asks takes between two questions.
void board_wait(void);

/// Milliseconds since reset.
uint64_t board_milliseconds(void);

/// Where the stack of the main program begins, its lowest address.
const uint32_t *_Nonnull board_main_stack_start(void);

/// Where it ends.
const uint32_t *_Nonnull board_main_stack_limit(void);

/// What an unused word of it holds.
#define BOARD_STACK_PAINT 0xA5A5A5A5u

/// Clears what calls that have returned left on the main stack; what was never used keeps its paint.
void board_wipe_stack(void);

/// 64 bytes that were there before reset.
uint8_t *_Nonnull board_entropy_bytes(void);

#endif
