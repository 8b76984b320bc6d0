#ifndef HOLDFAST_OPENSSL_START_H
#define HOLDFAST_OPENSSL_START_H

// Nothing to call: whoever links this has a libcrypto that reads no configuration file.

#endif
