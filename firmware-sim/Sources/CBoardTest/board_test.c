#include "CBoardTest.h"

static _Alignas(4) uint8_t question[BOARD_TEST_BYTE_COUNT], answer[BOARD_TEST_BYTE_COUNT];

uint8_t *board_test_question(void) { return question; }

uint8_t *board_test_answer(void) { return answer; }

void board_test_read_nowhere(void) { (void)*(volatile uint32_t *)0x10000000; }

void board_test_undefined(void) { __asm__ __volatile__("udf #7"); }

void board_test_write_code(void) { *(volatile uint32_t *)0x100 = 0; }

void board_test_run_memory(void) {
  // bx lr
  question[0] = 0x70, question[1] = 0x47;
  ((void (*)(void))(question + 1))();
}
