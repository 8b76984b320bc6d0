// The same steps as the device's, in C, on the same board: what Swift costs is told by it.
//
// Question: u16 and M1, u16 and M2. Answer: u32 and u32, the ticks that the answer took and those of the curve among them;
// u16 and M3. It is silent where the flash holds no device.

#include "board.h"
#include "device.h"

#define UART 0x40004000u
#define SYSTICK 0xE000E010u
#define TICKS_A_MILLISECOND 25000u

uint64_t curve_ticks;

static Device device;

_Noreturn static void stop(void) {
  board_hold_interrupts();
  for (;;) board_sleep();
}

_Noreturn void board_fault(const uint32_t *frame, uint32_t exception) { stop(); }

uint64_t ticks(void) {
  for (;;) {
    uint64_t before = board_milliseconds();
    uint32_t left = board_load(SYSTICK + 8);
    if (board_milliseconds() == before) return before * TICKS_A_MILLISECOND + TICKS_A_MILLISECOND - 1 - left;
  }
}

// So that interrupts come at the same places of the same work.
static void begin_millisecond(void) {
  board_store(SYSTICK + 8, 0);
  while (board_load(SYSTICK + 8) == 0) {
  }
}

static uint8_t receive_byte(void) {
  while ((board_load(UART + 4) & 2) == 0) {
    board_hold_interrupts();
    if ((board_load(UART + 4) & 2) == 0) board_wait();
    board_allow_interrupts();
  }
  return (uint8_t)board_load(UART);
}

static void send(const uint8_t *bytes, size_t count) {
  for (size_t index = 0; index < count; index++) {
    while (board_load(UART + 4) & 1) {
    }
    board_store(UART, bytes[index]);
  }
}

static void send_number(uint32_t number, int byte_count) {
  for (int shift = 8 * (byte_count - 1); shift >= 0; shift -= 8) send(&(uint8_t){(uint8_t)(number >> shift)}, 1);
}

// What does not fit is not answered any more.
static Bytes receive(uint8_t *room, size_t capacity) {
  size_t count = (size_t)receive_byte() << 8;
  count |= receive_byte();
  if (count > capacity) stop();
  for (size_t index = 0; index < count; index++) room[index] = receive_byte();
  return (Bytes){room, count};
}

_Noreturn void firmware_main(void) {
  static uint8_t first[64], second[4096], reply[1152];
  board_store(UART + 16, 16);
  board_store(UART + 8, 11);
  board_store(0xE000E100, 1);
  board_store(SYSTICK + 4, TICKS_A_MILLISECOND - 1);
  board_store(SYSTICK + 8, 0);
  board_store(SYSTICK, 7);
  board_allow_interrupts();
  if (!device_start(&device)) stop();
  for (;;) {
    Bytes m1 = receive(first, sizeof first), m2 = receive(second, sizeof second);
    Writer m3 = {reply, sizeof reply, 0, false};
    curve_ticks = 0;
    begin_millisecond();
    uint64_t begun = ticks();
    answer(&device, m1, m2, &m3);
    uint64_t taken = ticks() - begun;
    send_number((uint32_t)taken, 4);
    send_number((uint32_t)curve_ticks, 4);
    send_number(m3.count, 2);
    send(m3.bytes, m3.count);
  }
}
