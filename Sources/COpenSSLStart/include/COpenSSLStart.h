#ifndef HOLDFAST_OPENSSL_START_H
#define HOLDFAST_OPENSSL_START_H

// There is no function to call: in a program that links this, libcrypto reads no configuration file.

#endif
