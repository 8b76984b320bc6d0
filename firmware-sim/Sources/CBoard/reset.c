// Reset, the vector table, and the handlers.

#include "board.h"

#include <stdbool.h>

extern uint32_t board_data[], board_data_end[], board_data_load[], board_bss[], board_bss_end[];
extern uint32_t board_main_stack[], board_main_stack_end[], board_handler_stack_end[];
extern uint8_t board_entropy[];

/// The program. It never returns.
_Noreturn void firmware_main(void);

/// Reports a fault and stops. `frame` contains the registers that the processor saved; `exception` is its number.
_Noreturn void board_fault(const uint32_t *frame, uint32_t exception);

#define SYSTEM_HANDLER_CONTROL 0xE000ED24u
#define CONFIGURATION_CONTROL 0xE000ED14u
#define SYSTICK_CONTROL 0xE000E010u

static volatile uint64_t milliseconds;

uint64_t board_milliseconds(void) {
  uint32_t masked;
  __asm__ __volatile__("mrs %0, primask\n\tcpsid i" : "=r"(masked) : : "memory");
  uint64_t now = milliseconds;
  __asm__ __volatile__("msr primask, %0" : : "r"(masked) : "memory");
  return now;
}

const uint32_t *board_main_stack_start(void) { return board_main_stack; }

const uint32_t *board_main_stack_limit(void) { return board_main_stack_end; }

// It calls no function and keeps everything in registers, because it wipes the memory below the stack pointer. An interrupt in
// between has returned before the next word is wiped.
void board_wipe_stack(void) {
  uint32_t *end;
  __asm__ __volatile__("mov %0, sp" : "=r"(end));
  volatile uint32_t *word = board_main_stack;
  while (word < end && *word == BOARD_STACK_PAINT) word++;
  while (word < end) *word++ = 0;
}

uint8_t *board_entropy_bytes(void) { return board_entropy; }

// QEMU's loader puts a word after the entropy.
void board_wait(void) {
  bool is_still = board_load((uintptr_t)board_entropy + 64) == 0x6c6c6974;
  if (is_still) board_store(SYSTICK_CONTROL, 6);
  board_sleep();
  if (is_still) board_store(SYSTICK_CONTROL, 7);
}

static void count_millisecond(void) { milliseconds += 1; }

// UART0 has a byte, which ends the wait. The code that waited reads the byte.
static void wake(void) { board_store(0x4000400C, 2); }

// All unexpected exceptions. Bit 2 of the return code shows on which stack the frame is.
__attribute__((naked)) static void fault(void) {
  __asm__ __volatile__(
      "tst lr, #4\n\t"
      "ite eq\n\t"
      "mrseq r0, msp\n\t"
      "mrsne r0, psp\n\t"
      "mrs r1, ipsr\n\t"
      "b board_fault");
}

// Code is read-only, RAM is not executable, and there is nothing below the stack: an access there faults, which the emulated bus
// by itself would not do. Source: Armv7-M Architecture Reference Manual §B3.5.
static void protect_memory(void) {
  static const struct {
    uint32_t base, attributes;
  } regions[] = {
      {0x10000000, 1u << 28 | 27 << 1 | 1},                       // 256 MiB that nobody reads, writes or runs
      {0x20000000, 1u << 28 | 3 << 24 | 1 << 19 | 28 << 1 | 1},   // 512 MiB to read and write
      {0x00000000, 6u << 24 | 1 << 19 | 21 << 1 | 1},             // 4 MiB to read and run
  };
  for (uint32_t number = 0; number < sizeof regions / sizeof regions[0]; number++) {
    board_store(0xE000ED9C, regions[number].base | 1u << 4 | number);
    board_store(0xE000EDA0, regions[number].attributes);
  }
  // Peripherals keep the default attributes.
  board_store(0xE000ED94, 1u << 2 | 1u);
  __asm__ __volatile__("dsb\n\tisb" ::: "memory");
}

// It runs on the handlers' stack, so that it can mark the whole main stack.
__attribute__((used, noinline)) static void prepare_memory(void) {
  for (volatile uint32_t *word = board_main_stack; word < board_main_stack_end; word++) *word = BOARD_STACK_PAINT;
  const uint32_t *source = board_data_load;
  for (volatile uint32_t *word = board_data; word < board_data_end; word++) *word = *source++;
  for (volatile uint32_t *word = board_bss; word < board_bss_end; word++) *word = 0;
  board_store(SYSTEM_HANDLER_CONTROL, board_load(SYSTEM_HANDLER_CONTROL) | 7u << 16);
  // Division by zero faults. Unaligned words are permitted, because compilers use them.
  board_store(CONFIGURATION_CONTROL, board_load(CONFIGURATION_CONTROL) | 1u << 4);
  protect_memory();
}

__attribute__((naked)) void board_reset(void) {
  __asm__ __volatile__(
      "bl prepare_memory\n\t"
      "ldr r0, =board_main_stack_end\n\t"
      "msr psp, r0\n\t"
      "movs r0, #2\n\t"
      "msr control, r0\n\t"
      "isb\n\t"
      "b firmware_main");
}

typedef void (*Vector)(void);

__attribute__((section(".vectors"), used)) static const Vector vectors[16 + 32] = {
    [0] = (Vector)board_handler_stack_end,
    [1] = board_reset,
    [2 ... 14] = fault,
    [15] = count_millisecond,
    [16] = wake,
    [17 ... 47] = fault,
};
