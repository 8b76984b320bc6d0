#ifndef HOLDFAST_CERTIFICATE_CHAIN_H
#define HOLDFAST_CERTIFICATE_CHAIN_H

#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <time.h>

#include "pinned_key.h"

/// The result of ``holdfast_check_chain``.
enum holdfast_chain_result {
  HOLDFAST_CHAIN_OK,
  /// A certificate is not exactly one in DER.
  HOLDFAST_CHAIN_MALFORMED,
  /// The file with the authorities cannot be used.
  HOLDFAST_CHAIN_BAD_AUTHORITIES,
  /// X509_verify_cert(3) refuses.
  HOLDFAST_CHAIN_REFUSED,
  /// No key of the verified chain is pinned.
  HOLDFAST_CHAIN_UNPINNED,
  /// The library failed.
  HOLDFAST_CHAIN_FAILED,
};

/// The certificates of a TLS server, and the conditions that they must meet.
struct holdfast_chain {
  /// The certificates in DER, one after the other, the server's first; and the byte count of each.
  const unsigned char *certificates;
  const size_t *byte_counts;
  size_t count;
  /// A DNS name or an IP address.
  const char *host;
  /// A file in PEM with the only authorities that count; NULL for those of the system.
  const char *authorities;
  /// The time of the check, in Unix seconds.
  time_t now;
  /// SHA-256 digests of SubjectPublicKeyInfo, 32 bytes each; none if no key is pinned.
  const unsigned char *pins;
  size_t pin_count;
  /// The number of X509_STORE_CTX_get_error(3) after ``HOLDFAST_CHAIN_REFUSED``.
  int error;
};

static inline enum holdfast_chain_result holdfast_verify_chain(
    struct holdfast_chain *task, X509_STORE *store, STACK_OF(X509) *certificates, X509_STORE_CTX *context) {
  if (task->authorities ? X509_STORE_load_file(store, task->authorities) != 1 : X509_STORE_set_default_paths(store) != 1) {
    return HOLDFAST_CHAIN_BAD_AUTHORITIES;
  }
  const unsigned char *next = task->certificates;
  for (size_t index = 0; index < task->count; index++) {
    const unsigned char *end = next + task->byte_counts[index];
    X509 *certificate = d2i_X509(NULL, &next, (long)task->byte_counts[index]);
    if (!certificate || next != end) {
      X509_free(certificate);
      return HOLDFAST_CHAIN_MALFORMED;
    }
    if (sk_X509_push(certificates, certificate) <= 0) {
      X509_free(certificate);
      return HOLDFAST_CHAIN_FAILED;
    }
  }
  if (X509_STORE_CTX_init(context, store, sk_X509_value(certificates, 0), certificates) != 1) return HOLDFAST_CHAIN_FAILED;
  X509_VERIFY_PARAM *conditions = X509_STORE_CTX_get0_param(context);
  X509_VERIFY_PARAM_set_time(conditions, task->now);
  X509_VERIFY_PARAM_set_hostflags(conditions, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  // 112 bits, as TLS demands by default: RSA with 2048 bits, no SHA-1.
  X509_VERIFY_PARAM_set_auth_level(conditions, 2);
  if (X509_VERIFY_PARAM_set_purpose(conditions, X509_PURPOSE_SSL_SERVER) != 1) return HOLDFAST_CHAIN_FAILED;
  if (X509_VERIFY_PARAM_set1_ip_asc(conditions, task->host) != 1 &&
      X509_VERIFY_PARAM_set1_host(conditions, task->host, 0) != 1) {
    return HOLDFAST_CHAIN_FAILED;
  }
  if (X509_verify_cert(context) != 1) {
    task->error = X509_STORE_CTX_get_error(context);
    return HOLDFAST_CHAIN_REFUSED;
  }
  int is_pinned = task->pin_count == 0 || holdfast_has_pinned_key(context, task->pins, task->pin_count);
  return is_pinned ? HOLDFAST_CHAIN_OK : HOLDFAST_CHAIN_UNPINNED;
}

/// Checks the certificates of a TLS server: they lead to a trusted authority, are valid at the time, and are for the host; and a key
/// of the chain is pinned, if there are pins.
///
/// Source: RFC 5280 §6, RFC 6125 §6.4, RFC 7469 §2.6; X509_verify_cert(3).
static inline enum holdfast_chain_result holdfast_check_chain(struct holdfast_chain *task) {
  X509_STORE *store = X509_STORE_new();
  X509_STORE_CTX *context = X509_STORE_CTX_new();
  STACK_OF(X509) *certificates = sk_X509_new_null();
  enum holdfast_chain_result result = HOLDFAST_CHAIN_FAILED;
  if (store && context && certificates) result = holdfast_verify_chain(task, store, certificates, context);
  X509_STORE_CTX_free(context);
  sk_X509_pop_free(certificates, X509_free);
  X509_STORE_free(store);
  ERR_clear_error();
  return result;
}

#endif
