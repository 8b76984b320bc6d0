// What a device keeps in flash. Source: Sources/HoldfastFirmware/Journal, Store.

#ifndef HOLDFAST_JOURNAL_H
#define HOLDFAST_JOURNAL_H

#include "cbor.h"

/// The generation floor of a key.
typedef struct {
  uint8_t key_id[8];
  uint64_t floor;
} Generation;

/// What is kept of the numbered requests of a token.
typedef struct {
  bool is_kept, has_outcome;
  uint8_t key_id[8], token_id[16], digest[16];
  uint64_t expires, highest, window, outcome;
} Numbers;

enum { NUMBERS_COUNT = 64 };

typedef struct {
  uint32_t slot, sequence, end;
  uint64_t clock_floor, boot_count, next_user_id, next_code_id;
  uint64_t audit_count;
  /// When the newest audit entry was made.
  uint64_t newest_time;
  uint8_t audit_head[32];
  Generation generations[16];
  size_t generation_count;
  Numbers numbers[NUMBERS_COUNT];
} Journal;

/// Everything that can be read of the flash.
Bytes flash(void);

/// Reads the journal; false where there is none.
bool journal_open(Journal *journal);

/// Makes a transaction durable, and takes note of what it says; false where that fails.
bool journal_append(Journal *journal, Bytes transaction);

/// The device's time: the clock floor, or the newest entry's time, and what has passed since.
uint64_t journal_time(const Journal *journal);

/// Writes the items that a transaction may be made of.
void write_state(Writer *writer, const Journal *journal, uint64_t clock_floor);
void write_generation(Writer *writer, const uint8_t *key_id, uint64_t floor);
void write_numbers(Writer *writer, size_t place, const Numbers *numbers);
void write_outcome(Writer *writer, size_t place, uint64_t outcome);
void write_audit_entry(Writer *writer, Bytes entry);

Generation *find_generation(Journal *journal, const uint8_t *key_id);

#endif
