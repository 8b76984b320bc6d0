#include "journal.h"

#include <string.h>

#include "../CBearSSL/include/CBearSSL.h"
#include "board.h"

#define FLASH 0x21000000u
#define FLASH_SIZE 0x20000u
#define FIRST_SLOT 0x4000u
#define SECOND_SLOT 0x12000u
#define SLOT_SIZE 0xE000u
#define SLOT_HEAD_SIZE 32u
#define ERASED 0xFFFFFFFFu

enum { STATE = 1, AUDIT_BASE, AUDIT_ENTRY, GENERATION, NUMBERS = 12, OUTCOME };

Bytes flash(void) { return (Bytes){(const uint8_t *)FLASH, FLASH_SIZE}; }

static uint32_t crc_of_byte(uint32_t crc, uint8_t byte) {
  static const uint32_t steps[16] = {
      0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
      0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
  crc ^= byte;
  crc = crc >> 4 ^ steps[crc & 15];
  return crc >> 4 ^ steps[crc & 15];
}

static uint32_t crc_of_word(uint32_t crc, uint32_t word) {
  for (int shift = 0; shift < 32; shift += 8) crc = crc_of_byte(crc, (uint8_t)(word >> shift));
  return crc;
}

static uint32_t checksum(uint32_t crc) { return ~crc == ERASED ? 0 : ~crc; }

static uint32_t word_at(uint32_t offset) { return board_load(FLASH + offset); }

// Ones become zeros, never the reverse; then a look whether the word is there.
static bool program(uint32_t offset, uint32_t word) {
  if (offset % 4 != 0 || offset > FLASH_SIZE - 4 || (word_at(offset) & word) != word) return false;
  board_store(FLASH + offset, word);
  return word_at(offset) == word;
}

Generation *find_generation(Journal *journal, const uint8_t *key_id) {
  for (size_t index = 0; index < journal->generation_count; index++)
    if (memcmp(journal->generations[index].key_id, key_id, 8) == 0) return &journal->generations[index];
  return NULL;
}

static void keep_generation(Journal *journal, Reader *reader) {
  const uint8_t *key_id = read_fixed(reader, 8);
  Generation *known = find_generation(journal, key_id);
  expect(reader, known != NULL || journal->generation_count < 16);
  if (reader->has_failed) return;
  if (known == NULL) known = &journal->generations[journal->generation_count++];
  memcpy(known->key_id, key_id, 8);
  known->floor = read_unsigned(reader);
}

static void keep_numbers(Journal *journal, Reader *reader) {
  Numbers numbers = {.is_kept = true};
  memcpy(numbers.token_id, read_fixed(reader, 16), 16);
  uint64_t place = read_unsigned(reader);
  memcpy(numbers.key_id, read_fixed(reader, 8), 8);
  numbers.expires = read_unsigned(reader);
  numbers.highest = read_unsigned(reader);
  const uint8_t *window = read_fixed(reader, 8);
  for (int index = 0; index < 8; index++) numbers.window = numbers.window << 8 | window[index];
  memcpy(numbers.digest, read_fixed(reader, 16), 16);
  expect(reader, place < NUMBERS_COUNT);
  if (!reader->has_failed) journal->numbers[place] = numbers;
}

static void keep_outcome(Journal *journal, Reader *reader) {
  uint64_t place = read_unsigned(reader), outcome = read_unsigned(reader);
  expect(reader, place < NUMBERS_COUNT);
  if (reader->has_failed) return;
  journal->numbers[place].has_outcome = true;
  journal->numbers[place].outcome = outcome;
}

static void chain(Journal *journal, Bytes entry) {
  static const char label[] = "holdfast/1 audit";
  br_sha256_context hash;
  br_sha256_init(&hash);
  br_sha256_update(&hash, label, sizeof label);
  br_sha256_update(&hash, journal->audit_head, 32);
  br_sha256_update(&hash, entry.start, entry.count);
  br_sha256_out(&hash, journal->audit_head);
  journal->audit_count += 1;
}

// Takes note of the items of a transaction; of users and of uses it needs to know nothing.
static bool absorb(Journal *journal, Bytes transaction) {
  Reader reader = {transaction, false};
  while (reader.rest.count > 0) {
    Reader item = reader;
    read_over(&reader);
    read_array(&item);
    switch (read_unsigned(&item)) {
      case STATE:
        journal->clock_floor = read_unsigned(&item);
        journal->boot_count = read_unsigned(&item);
        journal->next_user_id = read_unsigned(&item);
        journal->next_code_id = read_unsigned(&item);
        break;
      case AUDIT_BASE:
        journal->audit_count = read_unsigned(&item);
        memcpy(journal->audit_head, read_fixed(&item, 32), 32);
        break;
      case AUDIT_ENTRY: {
        Bytes entry = read_bytes(&item);
        Reader head = {entry, false};
        read_array(&head);
        read_unsigned(&head);
        journal->newest_time = read_unsigned(&head);
        chain(journal, entry);
        break;
      }
      case GENERATION: keep_generation(journal, &item); break;
      case NUMBERS: keep_numbers(journal, &item); break;
      case OUTCOME: keep_outcome(journal, &item); break;
    }
    if (item.has_failed) return false;
  }
  return is_finished(&reader);
}

uint64_t journal_time(const Journal *journal) {
  static uint64_t time, since;
  uint64_t least = journal->newest_time > journal->clock_floor ? journal->newest_time : journal->clock_floor;
  uint32_t elapsed = (uint32_t)((board_milliseconds() - since) >> 3) / 125;
  time += elapsed;
  since += (uint64_t)elapsed * 1000;
  if (time < least) time = least, since = board_milliseconds();
  return time;
}

static bool is_in_force(uint32_t slot) { return word_at(slot + 12) == 0 && word_at(slot + 16) == ERASED; }

bool journal_open(Journal *journal) {
  memset(journal, 0, sizeof *journal);
  if (is_in_force(FIRST_SLOT) == is_in_force(SECOND_SLOT)) return false;
  journal->slot = is_in_force(FIRST_SLOT) ? FIRST_SLOT : SECOND_SLOT;
  journal->sequence = word_at(journal->slot + 4);
  journal->end = journal->slot + SLOT_HEAD_SIZE;
  while (word_at(journal->end) != ERASED) {
    uint32_t head = word_at(journal->end), count = head & 0xffff, crc = crc_of_word(ERASED, journal->sequence);
    uint32_t end = journal->end + 8 + (count + 3) / 4 * 4;
    if (head != (~count << 16 | count) || end > journal->slot + SLOT_SIZE) return false;
    for (uint32_t offset = journal->end; offset < end - 4; offset += 4) crc = crc_of_word(crc, word_at(offset));
    if (word_at(end - 4) != checksum(crc)) return false;
    if (!absorb(journal, (Bytes){flash().start + journal->end + 4, count})) return false;
    journal->end = end;
  }
  if (journal->newest_time > journal->clock_floor + 400 * 86400) journal->newest_time = 0;
  return true;
}

static bool append_word(Journal *journal, uint32_t word, uint32_t *crc) {
  *crc = crc_of_word(*crc, word);
  journal->end += 4;
  return program(journal->end - 4, word);
}

bool journal_append(Journal *journal, Bytes transaction) {
  uint32_t count = transaction.count, crc = crc_of_word(ERASED, journal->sequence), start = journal->end + 4;
  if (count + 8 > journal->slot + SLOT_SIZE - journal->end) return false;
  if (!append_word(journal, ~count << 16 | count, &crc)) return false;
  for (uint32_t offset = 0; offset < count; offset += 4) {
    uint32_t word = 0;
    for (uint32_t index = offset; index < offset + 4 && index < count; index++)
      word |= (uint32_t)transaction.start[index] << 8 * (index - offset);
    if (!append_word(journal, word, &crc)) return false;
  }
  if (!program(journal->end, checksum(crc))) return false;
  journal->end += 4;
  // What counts is what stands there.
  return absorb(journal, (Bytes){flash().start + start, count});
}

void write_state(Writer *writer, const Journal *journal, uint64_t clock_floor) {
  write_array(writer, 5);
  write_unsigned(writer, STATE);
  write_unsigned(writer, clock_floor);
  write_unsigned(writer, journal->boot_count);
  write_unsigned(writer, journal->next_user_id);
  write_unsigned(writer, journal->next_code_id);
}

void write_generation(Writer *writer, const uint8_t *key_id, uint64_t floor) {
  write_array(writer, 3);
  write_unsigned(writer, GENERATION);
  write_bytes(writer, key_id, 8);
  write_unsigned(writer, floor);
}

void write_numbers(Writer *writer, size_t place, const Numbers *numbers) {
  uint8_t window[8];
  for (int index = 0; index < 8; index++) window[index] = (uint8_t)(numbers->window >> (56 - 8 * index));
  write_array(writer, 8);
  write_unsigned(writer, NUMBERS);
  write_bytes(writer, numbers->token_id, 16);
  write_unsigned(writer, place);
  write_bytes(writer, numbers->key_id, 8);
  write_unsigned(writer, numbers->expires);
  write_unsigned(writer, numbers->highest);
  write_bytes(writer, window, 8);
  write_bytes(writer, numbers->digest, 16);
}

void write_outcome(Writer *writer, size_t place, uint64_t outcome) {
  write_array(writer, 3);
  write_unsigned(writer, OUTCOME);
  write_unsigned(writer, place);
  write_unsigned(writer, outcome);
}

void write_audit_entry(Writer *writer, Bytes entry) {
  write_array(writer, 2);
  write_unsigned(writer, AUDIT_ENTRY);
  write_bytes(writer, entry.start, entry.count);
}
