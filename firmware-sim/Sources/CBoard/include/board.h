#ifndef HOLDFAST_BOARD_H
#define HOLDFAST_BOARD_H

#include <stddef.h>
#include <stdint.h>

/// Reads the device register, or the word of flash, at `address`.
static inline uint32_t board_load(uintptr_t address) { return *(volatile uint32_t *)address; }

/// Writes the device register, or the word of flash, at `address`.
static inline void board_store(uintptr_t address, uint32_t value) { *(volatile uint32_t *)address = value; }

/// Masks interrupts until ``board_allow_interrupts``. A masked interrupt still ends a wait.
static inline void board_hold_interrupts(void) { __asm__ __volatile__("cpsid i" ::: "memory"); }

/// Unmasks interrupts.
static inline void board_allow_interrupts(void) { __asm__ __volatile__("cpsie i" ::: "memory"); }

/// Sleeps until there is an interrupt, masked or not.
static inline void board_sleep(void) { __asm__ __volatile__("dsb\n\twfi" ::: "memory"); }

/// Sleeps until a byte arrives from the serial line, or until another interrupt. With `run --still`, the clock stops during the
/// sleep, so that the device's behaviour does not depend on the time that the peer takes.
void board_wait(void);

/// Returns the milliseconds since reset.
uint64_t board_milliseconds(void);

/// The lowest address of the main stack.
const uint32_t *_Nonnull board_main_stack_start(void);

/// The end of the main stack.
const uint32_t *_Nonnull board_main_stack_limit(void);

/// The value of an unused word of the main stack.
#define BOARD_STACK_PAINT 0xA5A5A5A5u

/// Wipes the values that finished calls left on the main stack. Words that were never used keep their mark.
void board_wipe_stack(void);

/// 64 bytes that were in RAM before reset.
uint8_t *_Nonnull board_entropy_bytes(void);

#endif
