#ifndef HOLDFAST_CBOARD_TEST_H
#define HOLDFAST_CBOARD_TEST_H

#include <stdint.h>

/// The sizes of five structures of BearSSL as the compiler of BearSSL lays them out.
const uint32_t *_Nonnull board_test_layouts(void);

/// Computes with an element of P-256's field and each of `count` others: their sum, difference and Montgomery product, and half
/// of the other; each has 32 bytes, the highest first. Returns 0 if one of them is not below the prime.
uint32_t board_test_field(
    const uint8_t *_Nonnull left, const uint8_t *_Nonnull rights, uint32_t count, uint8_t *_Nonnull results);

/// The buffers of questions and answers, which are not on the stack, because its use is measured.
uint8_t *_Nonnull board_test_question(void);
uint8_t *_Nonnull board_test_answer(void);

#define BOARD_TEST_BYTE_COUNT 4352

/// Reads from an address without memory.
void board_test_read_nowhere(void);

/// Runs an instruction that does not exist.
void board_test_undefined(void);

/// Writes over code.
void board_test_write_code(void);

/// Runs code in RAM.
void board_test_run_memory(void);

#endif
