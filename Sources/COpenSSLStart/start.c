#include "COpenSSLStart.h"

#include <openssl/crypto.h>

/// Runs before any code can ask libcrypto for an algorithm. A configuration file, which `OPENSSL_CONF` may name, could make it
/// load any library into this process and unload it before the process measures itself.
__attribute__((constructor)) static void refuse_configuration(void) {
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, 0);
}
