#ifndef HOLDFAST_PINNED_KEY_H
#define HOLDFAST_PINNED_KEY_H

#include <openssl/evp.h>
#include <openssl/x509.h>
#include <string.h>

/// Returns whether a certificate of the chain that was verified, up to the trusted one, has a pinned key.
///
/// `pins` are SHA-256 digests of SubjectPublicKeyInfo, 32 bytes each.
static inline int holdfast_has_pinned_key(X509_STORE_CTX *store, const unsigned char *pins, size_t pin_count) {
  STACK_OF(X509) *chain = X509_STORE_CTX_get0_chain(store);
  for (int index = 0; index < sk_X509_num(chain); index++) {
    unsigned char *key = NULL;
    unsigned char digest[32];
    int byte_count = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(sk_X509_value(chain, index)), &key);
    int is_hashed = byte_count > 0 && EVP_Digest(key, (size_t)byte_count, digest, NULL, EVP_sha256(), NULL) == 1;
    OPENSSL_free(key);
    if (!is_hashed) return 0;
    for (size_t pin = 0; pin < pin_count; pin++) {
      if (memcmp(digest, pins + 32 * pin, 32) == 0) return 1;
    }
  }
  return 0;
}

#endif
