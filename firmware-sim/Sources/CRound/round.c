// A round, from M2 to M3. Source: docs/protocol.md; Sources/HoldfastCore/Session, Policy.

#include <string.h>

#include "../CBearSSL/include/CBearSSL.h"
#include "../CBearSSL/secrets.h"
#include "board.h"
#include "device.h"

typedef enum {
  ACCEPTED = 0, TOKEN_INVALID = 1, TOKEN_EXPIRED = 2, TOKEN_REVOKED = 3, TOKEN_UNKNOWN = 4, INTEGRITY_MISMATCH = 5,
  DEVICE_MISMATCH = 6, FACTOR_MISSING = 7, COMMAND_REFUSED = 11, MALFORMED = 13, BUSY = 14, VERSION_TOO_OLD = 16,
  INTERNAL = 17,
} Status;

enum { REFERENCE, COSE };
enum { LONGEST_MESSAGE = 4096, LONGEST_REQUEST = 768, LONGEST_REPLY = 64, TAG_SIZE = 16, LIGHTS = 0x40028000 };

typedef struct {
  uint64_t encoding;
  Bytes head, token, integrity, device, sealed;
} Answer;

typedef struct {
  uint8_t transcript[32];
  /// From the prover, then to it.
  uint8_t keys[64];
} Session;

/// The parts of a request that commands here need, and the bytes that its digest covers.
typedef struct {
  Bytes command, command_item, parameters_item;
  bool has_number;
  uint64_t number;
  uint8_t digest[32];
} Request;

/// What a prover is told beside the status; 0 for nothing, but for the highest number.
typedef struct {
  uint64_t clock, generation, missing, highest;
  bool is_repetition;
  const char *refusal;
} Notice;

static const uint8_t zero_nonce[12];

static Bytes read_proof(Reader *reader) {
  if (read_null(reader)) return (Bytes){0};
  return (Bytes){read_fixed(reader, 32), 32};
}

static bool read_answer(Bytes message, Answer *answer) {
  Reader reader = {message, message.count > LONGEST_MESSAGE};
  expect(&reader, read_array(&reader) == 5);
  expect(&reader, read_unsigned(&reader) == 2);
  answer->head = read_bytes(&reader);
  answer->integrity = read_proof(&reader);
  answer->device = read_proof(&reader);
  answer->sealed = read_bytes(&reader);
  Reader head = {answer->head, reader.has_failed};
  expect(&head, read_array(&head) == 3);
  read_fixed(&head, 16);
  answer->encoding = read_unsigned(&head);
  answer->token = read_bytes(&head);
  expect(&head, answer->encoding == COSE || (answer->encoding == REFERENCE && answer->token.count == 16));
  return is_finished(&reader) && is_finished(&head);
}

static const Token *recall(const Device *device, const uint8_t *reference) {
  for (size_t index = 0; index < device->remembered_count; index++)
    if (memcmp(device->remembered[index].reference, reference, 16) == 0) return &device->remembered[index].token;
  return NULL;
}

static void remember(Device *device, Bytes encoded, const Token *token) {
  br_sha256_context hash;
  uint8_t digest[32];
  br_sha256_init(&hash);
  br_sha256_update(&hash, encoded.start, encoded.count);
  br_sha256_out(&hash, digest);
  if (recall(device, digest) != NULL) return;
  memcpy(device->remembered[device->oldest].reference, digest, 16);
  device->remembered[device->oldest].token = *token;
  device->oldest = (device->oldest + 1) % 8;
  if (device->remembered_count < 8) device->remembered_count += 1;
}

// The issuer is trusted now in this way, and the token is not of an unlikely future. The audience was read with the claims.
static bool is_valid(const Device *device, const Token *token) {
  Bytes key = find_issuer(device, token->issuer);
  if (key.count == 0 || (key.count == 32 && !device->accepts_mac)) return false;
  return token->issued_at <= device->journal.clock_floor + device->issue_advance;
}

static void hash_transcript(Bytes m1, Bytes head, uint8_t *transcript) {
  static const char label[] = "holdfast/1 transcript";
  const uint8_t counts[4] = {(uint8_t)(m1.count >> 8), (uint8_t)m1.count, (uint8_t)(head.count >> 8), (uint8_t)head.count};
  br_sha256_context hash;
  br_sha256_init(&hash);
  br_sha256_update(&hash, label, sizeof label);
  br_sha256_update(&hash, counts, 2);
  br_sha256_update(&hash, m1.start, m1.count);
  br_sha256_update(&hash, counts + 2, 2);
  br_sha256_update(&hash, head.start, head.count);
  br_sha256_out(&hash, transcript);
}

// Whether `given` is the proof of a measurement; computed also where nothing is given.
static bool is_proof(const Session *session, const Token *token, const uint8_t *measurement, Bytes given) {
  br_hmac_key_context key;
  br_hmac_context mac;
  uint8_t nonce[16], expected[32];
  memcpy(nonce, session->transcript, 16);
  nonce[0] |= 0x80;
  br_hmac_key_init(&key, &br_sha256_vtable, token->proof_key, 16);
  br_hmac_init(&mac, &key, 0);
  br_hmac_update(&mac, nonce, 16);
  br_hmac_update(&mac, measurement, 32);
  br_hmac_out(&mac, expected);
  wipe(&key, sizeof key);
  wipe(&mac, sizeof mac);
  return given.count == 32 && are_equal(expected, given.start, 32);
}

static void derive_keys(Session *session, const Token *token) {
  static const char info[] = "holdfast/1 session keys";
  uint8_t input[48];
  memcpy(input, token->proof_key, 16);
  memcpy(input + 16, token->device, 32);
  holdfast_hkdf(input, 48, session->transcript, 32, (const uint8_t *)info, sizeof info - 1, session->keys, 64);
  wipe(input, sizeof input);
}

// [user, code]
static void read_code(Reader *reader) {
  expect(reader, read_array(reader) == 2);
  read_text(reader, 32);
  read_text(reader, 16);
}

// What was read of `reader` since it stood at `start`.
static Bytes item_since(const uint8_t *start, const Reader *reader) {
  return (Bytes){start, reader->has_failed ? 0 : (size_t)(reader->rest.start - start)};
}

// {1: command, 2: [parameter …], 3: [user, otp], 4: [user, seal], 5: number}; of the codes, commands here need none.
static bool read_request(Bytes plaintext, Request *request) {
  static const uint8_t no_parameters = 0x80;
  Reader reader = {plaintext, false};
  LabelOrder order = {0};
  uint64_t count = read_map(&reader), parameter_count;
  *request = (Request){.parameters_item = {&no_parameters, 1}};
  expect_label(&reader, &order, 1);
  const uint8_t *start = reader.rest.start;
  request->command = read_text(&reader, 32);
  request->command_item = item_since(start, &reader);
  for (; count > 1 && !reader.has_failed; count--) {
    switch (read_label(&reader, &order)) {
      case 2:
        start = reader.rest.start;
        parameter_count = read_array(&reader);
        expect(&reader, parameter_count <= 8);
        for (; parameter_count > 0 && !reader.has_failed; parameter_count--) read_text(&reader, 64);
        request->parameters_item = item_since(start, &reader);
        break;
      case 3:
      case 4: read_code(&reader); break;
      case 5:
        request->has_number = true;
        request->number = read_unsigned(&reader);
        break;
      default: expect(&reader, false);
    }
  }
  return count == 1 && is_finished(&reader);
}

static bool open_request(const Session *session, Bytes sealed, uint8_t *plaintext, Request *request) {
  if (sealed.count < TAG_SIZE || sealed.count > LONGEST_REQUEST) return false;
  size_t count = sealed.count - TAG_SIZE;
  memcpy(plaintext, sealed.start, count);
  return holdfast_gcm_open(session->keys, zero_nonce, session->transcript, 32, plaintext, count, sealed.start + count)
         && read_request((Bytes){plaintext, count}, request);
}

static const Rule *find_rule(const Device *device, Bytes command) {
  for (size_t index = 0; index < device->rule_count; index++)
    if (are_same(device->rules[index].name, command)) return &device->rules[index];
  return NULL;
}

static bool allows(const Token *token, Bytes command) {
  if (!token->has_commands) return true;
  for (size_t index = 0; index < token->command_count; index++)
    if (are_same((Bytes){token->commands[index].bytes, token->commands[index].count}, command)) return true;
  return false;
}

static bool is_older(const uint64_t *version, const uint64_t *least) {
  for (int index = 0; index < 3; index++)
    if (version[index] != least[index]) return version[index] < least[index];
  return false;
}

static uint64_t generation_floor(Device *device, const Token *token) {
  Generation *known = find_generation(&device->journal, token->issuer);
  return known == NULL ? 0 : known->floor;
}

// Of both, the numbers' digest has the first half.
static void hash_command(Request *request) {
  static const char label[] = "holdfast/1 seal";
  br_sha256_context hash;
  if (!request->has_number) return;
  br_sha256_init(&hash);
  br_sha256_update(&hash, label, sizeof label);
  br_sha256_update(&hash, "\x82", 1);
  br_sha256_update(&hash, request->command_item.start, request->command_item.count);
  br_sha256_update(&hash, request->parameters_item.start, request->parameters_item.count);
  br_sha256_out(&hash, request->digest);
}

static void count_ages(Device *device) {
  uint64_t now = board_milliseconds();
  if (!device->has_counted) device->has_counted = true, device->counted_milliseconds = now;
  uint64_t passed = (now - device->counted_milliseconds) / 1000;
  device->counted_milliseconds += 1000 * passed;
  for (size_t place = 0; passed > 0 && place < NUMBERS_COUNT; place++)
    device->ages[place] = passed > 65535u - device->ages[place] ? 65535u : (uint16_t)(device->ages[place] + passed);
}

// Where the numbers of a token are, or may be; NUMBERS_COUNT for no place.
static size_t find_place(Device *device, const Token *token) {
  const Numbers *numbers = device->journal.numbers;
  size_t oldest = 0;
  count_ages(device);
  for (size_t place = 0; place < NUMBERS_COUNT; place++)
    if (numbers[place].is_kept && memcmp(numbers[place].token_id, token->token_id, 16) == 0
        && memcmp(numbers[place].key_id, token->issuer, 8) == 0)
      return place;
  for (size_t place = 0; place < NUMBERS_COUNT; place++)
    if (!numbers[place].is_kept) return place;
  for (size_t place = 0; place < NUMBERS_COUNT; place++)
    if (numbers[place].expires <= device->journal.clock_floor) return place;
  for (size_t place = 0; place < NUMBERS_COUNT; place++)
    if (device->ages[place] > device->ages[oldest]) oldest = place;
  return device->ages[oldest] > 60 ? oldest : NUMBERS_COUNT;
}

// What is kept of this token, and has not expired; NULL for nothing.
static const Numbers *find_numbers(const Device *device, const Token *token, size_t place) {
  if (place >= NUMBERS_COUNT) return NULL;
  const Numbers *numbers = &device->journal.numbers[place];
  if (!numbers->is_kept || memcmp(numbers->token_id, token->token_id, 16) != 0
      || memcmp(numbers->key_id, token->issuer, 8) != 0)
    return NULL;
  return numbers->expires > device->journal.clock_floor ? numbers : NULL;
}

static bool covers(const Numbers *numbers, uint64_t number) {
  if (number > numbers->highest) return false;
  uint64_t distance = numbers->highest - number;
  return distance == 0 || distance > 64 || (numbers->window >> (distance - 1) & 1) == 1;
}

// The numbers with that of an accepted request. Source: RFC 4303 §3.4.3.
static Numbers numbers_with(const Numbers *known, const Token *token, const Request *request) {
  Numbers numbers = {.is_kept = true, .expires = token->expires, .highest = request->number};
  memcpy(numbers.key_id, token->issuer, 8);
  memcpy(numbers.token_id, token->token_id, 16);
  memcpy(numbers.digest, request->digest, 16);
  if (known == NULL) return numbers;
  if (known->expires > numbers.expires) numbers.expires = known->expires;
  if (request->number < known->highest) {
    uint64_t expires = numbers.expires;
    numbers = *known;
    numbers.expires = expires;
    numbers.window |= 1ull << (known->highest - request->number - 1);
    return numbers;
  }
  uint64_t distance = request->number - known->highest;
  numbers.window = (distance < 64 ? known->window << distance : 0) | (distance <= 64 ? 1ull << (distance - 1) : 0);
  return numbers;
}

// The first rule that objects gives the status.
static Status decide(
    Device *device, const Token *token, const Answer *answer, bool proves_integrity, const Request *request,
    size_t place, Notice *notice) {
  Bytes command = request->command;
  const Rule *rule = find_rule(device, command);
  const Numbers *known = request->has_number ? find_numbers(device, token, place) : NULL;
  const Limits *limits = rule == NULL ? &device->limits : &rule->limits;
  uint64_t now = journal_time(&device->journal), floor = generation_floor(device, token);
  if (floor < limits->generation) floor = limits->generation;
  if (token->generation < floor) return notice->generation = floor, TOKEN_REVOKED;
  uint64_t age = now > token->issued_at ? now - token->issued_at : 0;
  if (token->expires <= now || (limits->has_age && age > limits->age)) return notice->clock = now, TOKEN_EXPIRED;
  if (is_older(token->version, limits->version)) return VERSION_TOO_OLD;
  if (known != NULL && covers(known, request->number)) {
    notice->is_repetition = true;
    notice->highest = known->highest;
    if (request->number != known->highest) return INTERNAL;
    if (memcmp(known->digest, request->digest, 16) != 0) return notice->refusal = "anotherCommand", COMMAND_REFUSED;
    return known->has_outcome ? (Status)known->outcome : INTERNAL;
  }
  if (answer->integrity.count > 0 && !proves_integrity) return INTEGRITY_MISMATCH;
  if (rule == NULL) return notice->refusal = "notInPolicy", COMMAND_REFUSED;
  if (!allows(token, command)) return notice->refusal = "notInToken", COMMAND_REFUSED;
  notice->missing = rule->factors & ~(uint64_t)(DEVICE | (proves_integrity ? INTEGRITY : 0));
  if (notice->missing != 0) return FACTOR_MISSING;
  // There is no room to count uses.
  return token->is_counted || (request->has_number && place >= NUMBERS_COUNT) ? BUSY : ACCEPTED;
}

// One transaction: the clock floor and the generation floor where they rise, the request's number, and the audit entry. A denial that
// moves no floor is not written.
static bool record(Device *device, const Token *token, const Request *request, size_t place, Status status) {
  Journal *journal = &device->journal;
  if (status != ACCEPTED && token->issued_at <= journal->clock_floor) return true;
  uint64_t floor = journal->clock_floor > token->issued_at ? journal->clock_floor : token->issued_at;
  uint64_t now = journal_time(journal);
  WRITER(transaction, 1024);
  WRITER(entry, 320);
  if (floor > journal->clock_floor) write_state(&transaction, journal, floor);
  if (status == ACCEPTED && token->generation > generation_floor(device, token))
    write_generation(&transaction, token->issuer, token->generation);
  if (status == ACCEPTED && request->has_number) {
    Numbers numbers = numbers_with(find_numbers(device, token, place), token, request);
    write_numbers(&transaction, place, &numbers);
    if (numbers.has_outcome) write_outcome(&transaction, place, numbers.outcome);
    device->ages[place] = 0;
  }
  write_array(&entry, 9);
  write_unsigned(&entry, journal->audit_count + 1);
  write_unsigned(&entry, floor > now ? floor : now);
  write_unsigned(&entry, 0);
  write_unsigned(&entry, status);
  write_text(&entry, request->command);
  write_bytes(&entry, token->issuer, 8);
  write_bytes(&entry, token->token_id, 16);
  write_text(&entry, (Bytes){token->subject, token->subject_count});
  write_unsigned(&entry, 0);
  write_audit_entry(&transaction, (Bytes){entry.bytes, entry.count});
  if (entry.has_failed || transaction.has_failed) return false;
  return journal_append(journal, (Bytes){transaction.bytes, transaction.count});
}

// Nobody waits for this to be there, and nothing follows where it is not.
static void record_outcome(Device *device, const Request *request, size_t place, Status outcome) {
  if (device->journal.numbers[place].highest != request->number) return;
  WRITER(transaction, 8);
  write_outcome(&transaction, place, outcome);
  if (!transaction.has_failed) journal_append(&device->journal, (Bytes){transaction.bytes, transaction.count});
}

static bool is_named(Bytes command, const char *name) {
  return are_same(command, (Bytes){(const uint8_t *)name, strlen(name)});
}

static const char *move_lock(bool unlocks) {
  uint32_t others = board_load(LIGHTS) & ~1u;
  board_store(LIGHTS, unlocks ? others | 1 : others);
  if ((board_load(LIGHTS) & 1) != unlocks) return NULL;
  return unlocks ? "unlocked" : "locked";
}

static const char unknown_to_actuator[] = "unknownToActuator";

// What the command gives; NULL where it fails.
static const char *perform(Bytes command) {
  if (is_named(command, "lock")) return move_lock(false);
  if (is_named(command, "unlock")) return move_lock(true);
  if (is_named(command, "status")) return board_load(LIGHTS) & 1 ? "unlocked" : "locked";
  if (is_named(command, "configure")) return "configured";
  if (is_named(command, "open-safe")) return "safe opened";
  return unknown_to_actuator;
}

static void write_number(Writer *writer, uint64_t label, uint64_t number) {
  if (number == 0) return;
  write_unsigned(writer, label);
  write_unsigned(writer, number);
}

static void write_verdict(Writer *m3, Status status) {
  write_array(m3, 3);
  write_unsigned(m3, 3);
  write_unsigned(m3, status);
}

static void write_sealed_verdict(
    Writer *m3, const Session *session, Status status, const char *result, const Notice *notice) {
  WRITER(reply, LONGEST_REPLY);
  uint8_t authenticated[33];
  memcpy(authenticated, session->transcript, 32);
  authenticated[32] = status;
  write_map(&reply, 1 + (notice->clock != 0) + (notice->generation != 0) + (notice->missing != 0) + notice->is_repetition);
  write_unsigned(&reply, 1);
  write_bytes(&reply, result, strlen(result));
  write_number(&reply, 2, notice->clock);
  write_number(&reply, 3, notice->generation);
  write_number(&reply, 5, notice->missing);
  if (notice->is_repetition) {
    write_unsigned(&reply, 6);
    write_unsigned(&reply, notice->highest);
  }
  uint8_t tag[TAG_SIZE];
  holdfast_gcm_seal(session->keys + 32, zero_nonce, authenticated, sizeof authenticated, reply.bytes, reply.count, tag);
  write_raw(&reply, tag, sizeof tag);
  write_verdict(m3, status);
  write_bytes(m3, reply.bytes, reply.count);
}

// What a peer is told that has proved the device measurement.
static void settle(
    Device *device, const Session *session, const Token *token, const Answer *answer, bool proves_integrity,
    Request *request, Writer *m3) {
  Notice notice = {0};
  hash_command(request);
  size_t place = request->has_number ? find_place(device, token) : NUMBERS_COUNT;
  Status status = decide(device, token, answer, proves_integrity, request, place, &notice);
  const char *result = notice.refusal == NULL ? "" : notice.refusal;
  if (!notice.is_repetition) {
    if (!record(device, token, request, place, status)) status = INTERNAL;
    bool is_accepted = status == ACCEPTED;
    if (is_accepted) result = perform(request->command);
    if (result == unknown_to_actuator) status = INTERNAL;
    if (result == NULL) status = INTERNAL, result = "";
    if (is_accepted && request->has_number) record_outcome(device, request, place, status);
  }
  write_sealed_verdict(m3, session, status, result, &notice);
}

static Status judge(Device *device, Bytes m1, Bytes m2, Session *session, Writer *m3) {
  static Token opened;
  Answer answer;
  uint8_t plaintext[LONGEST_REQUEST];
  Request request;
  if (!read_answer(m2, &answer)) return MALFORMED;
  const Token *token = &opened;
  if (answer.encoding == REFERENCE) {
    token = recall(device, answer.token.start);
    if (token == NULL) return TOKEN_UNKNOWN;
  } else if (!open_token(device, answer.token, &opened)) {
    return TOKEN_INVALID;
  }
  if (!is_valid(device, token)) return TOKEN_INVALID;
  hash_transcript(m1, answer.head, session->transcript);
  bool proves_integrity = is_proof(session, token, token->integrity, answer.integrity);
  bool proves_device = is_proof(session, token, token->device, answer.device);
  derive_keys(session, token);
  if (!proves_device) return DEVICE_MISMATCH;
  if (!open_request(session, answer.sealed, plaintext, &request)) return MALFORMED;
  if (answer.encoding == COSE) remember(device, answer.token, token);
  settle(device, session, token, &answer, proves_integrity, &request, m3);
  return ACCEPTED;
}

void answer(Device *device, Bytes m1, Bytes m2, Writer *m3) {
  Session session;
  Status refusal = judge(device, m1, m2, &session, m3);
  wipe(&session, sizeof session);
  if (m3->count > 0) return;
  write_verdict(m3, refusal);
  write_null(m3);
}
