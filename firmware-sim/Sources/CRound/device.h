// A device in C, for the rounds of a token alone: without JOSE, users' codes, counted uses, activations and compatibility rounds.

#ifndef HOLDFAST_DEVICE_H
#define HOLDFAST_DEVICE_H

#include "journal.h"

enum { INTEGRITY = 1, DEVICE = 2 };

/// What a token has to keep.
typedef struct {
  uint64_t generation;
  uint64_t version[3];
  uint64_t age;
  bool has_age;
} Limits;

typedef struct {
  Bytes name;
  uint64_t factors;
  Limits limits;
} Rule;

/// A command that a token names.
typedef struct {
  uint8_t count;
  uint8_t bytes[32];
} Command;

/// What a token says, once it was opened and its issuer's signature or MAC was right.
typedef struct {
  uint8_t issuer[8];
  uint8_t subject_count;
  uint8_t subject[64];
  uint64_t expires, issued_at, generation, version[3];
  uint8_t token_id[16], integrity[32], device[32], proof_key[16];
  bool has_commands, is_counted;
  uint8_t command_count;
  Command commands[16];
} Token;

typedef struct {
  uint8_t id[16], audience[22], scalar[32], key_id[8];
  /// In flash, a CBOR array.
  Bytes issuers;
  bool accepts_mac;
  uint64_t issue_advance;
  Limits limits;
  Rule rules[16];
  size_t rule_count;
  Journal journal;
  struct {
    uint8_t reference[16];
    Token token;
  } remembered[8];
  size_t remembered_count, oldest;
  /// How many seconds ago the numbers of each token were written, and until when that is counted.
  uint16_t ages[NUMBERS_COUNT];
  uint64_t counted_milliseconds;
  bool has_counted;
} Device;

/// Reads what the owner provisioned, and the journal; false where that is not whole.
bool device_start(Device *device);

/// The key of a trusted issuer, a point or a MAC key; empty for nobody's.
Bytes find_issuer(const Device *device, const uint8_t *key_id);

/// Opens a token of COSE; false unless all of it is as it has to be.
bool open_token(const Device *device, Bytes token, Token *opened);

/// Answers M2; M3 is left in `reply`, which has room for 1152 bytes.
void answer(Device *device, Bytes m1, Bytes m2, Writer *reply);

/// Time since reset, in ticks of 40 instructions.
uint64_t ticks(void);

/// How much of it the curve has taken.
extern uint64_t curve_ticks;

#endif
