#ifndef HOLDFAST_CBEARSSL_H
#define HOLDFAST_CBEARSSL_H

// BearSSL as `fetch-bearssl` provides it, and functions for its parts that Swift cannot use: addresses of constants and calls
// through tables.
#include "../../../.bearssl/source/inc/bearssl.h"

static inline const br_hash_class *_Nonnull holdfast_sha1(void) { return &br_sha1_vtable; }
static inline const br_hash_class *_Nonnull holdfast_sha256(void) { return &br_sha256_vtable; }
static inline const br_hash_class *_Nonnull holdfast_sha512(void) { return &br_sha512_vtable; }

static inline void holdfast_hash_init(br_hash_compat_context *_Nonnull context, const br_hash_class *_Nonnull hash) {
  hash->init(&context->vtable);
}

static inline void holdfast_hash_update(
    br_hash_compat_context *_Nonnull context, const void *_Nullable bytes, size_t count) {
  context->vtable->update(&context->vtable, bytes, count);
}

static inline void holdfast_hash_out(const br_hash_compat_context *_Nonnull context, void *_Nonnull result) {
  context->vtable->out(&context->vtable, result);
}

static inline size_t holdfast_hash_size(const br_hash_compat_context *_Nonnull context) {
  return context->vtable->desc >> BR_HASHDESC_OUT_OFF & BR_HASHDESC_OUT_MASK;
}

static inline void holdfast_random_init(
    br_aesctr_drbg_context *_Nonnull context, const void *_Nonnull seed, size_t count) {
  br_aesctr_drbg_init(context, &br_aes_ct_ctr_vtable, seed, count);
}

/// HKDF-SHA-256, extract and expand. Source: RFC 5869 §2.
void holdfast_hkdf(
    const uint8_t *_Nullable input_key, size_t input_key_count, const uint8_t *_Nullable salt, size_t salt_count,
    const uint8_t *_Nullable info, size_t info_count, uint8_t *_Nullable output, size_t output_count);

/// Encrypts `message` in place with AES-256-GCM and writes the tag: 32 bytes of key, 12 of nonce, 16 of tag.
/// Source: SP 800-38D §7.1.
void holdfast_gcm_seal(
    const uint8_t *_Nonnull key, const uint8_t *_Nonnull nonce, const uint8_t *_Nullable data, size_t data_count,
    uint8_t *_Nullable message, size_t message_count, uint8_t *_Nonnull tag);

/// Decrypts `message` in place and returns 1. For a wrong tag, returns 0 and leaves `message` unchanged.
/// Source: SP 800-38D §7.2.
uint32_t holdfast_gcm_open(
    const uint8_t *_Nonnull key, const uint8_t *_Nonnull nonce, const uint8_t *_Nullable data, size_t data_count,
    uint8_t *_Nullable message, size_t message_count, const uint8_t *_Nonnull tag);

/// Unwraps the 32 bytes of `key` from the 40 of `wrapped`; 0 if they were not wrapped with `wrapping_key`, 32 bytes.
/// Source: RFC 3394 §2.2.2.
uint32_t holdfast_key_unwrap(
    const uint8_t *_Nonnull wrapping_key, const uint8_t *_Nonnull wrapped, uint8_t *_Nonnull key);

/// Computes the public point, 65 bytes, of `scalar`, 32 bytes. Returns 0 if the scalar is 0 or not below the order.
uint32_t holdfast_p256_public_point(const uint8_t *_Nonnull scalar, uint8_t *_Nonnull point);

/// Computes the x coordinate, 32 bytes, of `scalar` times `peer`. Returns 0 if the scalar is 0 or not below the order, or if
/// the peer's 65 bytes are not a point on the curve.
uint32_t holdfast_p256_agree(
    const uint8_t *_Nonnull scalar, const uint8_t *_Nonnull peer, uint8_t *_Nonnull shared);

/// Returns 1 if r ‖ s, 64 bytes, is a signature by `key`, 65 bytes, over a digest of 32 bytes; otherwise 0.
uint32_t holdfast_p256_verify(
    const uint8_t *_Nonnull key, const uint8_t *_Nonnull digest, const uint8_t *_Nonnull signature);

#endif
