#include "CBearSSL.h"
#include "secrets.h"

void holdfast_hkdf(
    const uint8_t *input_key, size_t input_key_count, const uint8_t *salt, size_t salt_count, const uint8_t *info,
    size_t info_count, uint8_t *output, size_t output_count) {
  br_hkdf_context context;
  br_hkdf_init(&context, &br_sha256_vtable, salt, salt_count);
  br_hkdf_inject(&context, input_key, input_key_count);
  br_hkdf_flip(&context);
  br_hkdf_produce(&context, info, info_count, output, output_count);
  wipe(&context, sizeof context);
}
