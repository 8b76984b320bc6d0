#ifndef HOLDFAST_CBOARD_TEST_H
#define HOLDFAST_CBOARD_TEST_H

#include <stdint.h>

/// The sizes of five structures of BearSSL as the compiler of BearSSL lays them out.
const uint32_t *_Nonnull board_test_layouts(void);

/// Where questions and answers lie: not on the stack, whose use is measured.
uint8_t *_Nonnull board_test_question(void);
uint8_t *_Nonnull board_test_answer(void);

#define BOARD_TEST_BYTE_COUNT 4352

/// Reads where there is no memory.
void board_test_read_nowhere(void);

/// Runs an instruction that there is none of.
void board_test_undefined(void);

/// Writes over code.
void board_test_write_code(void);

/// Runs what lies in memory.
void board_test_run_memory(void);

#endif
