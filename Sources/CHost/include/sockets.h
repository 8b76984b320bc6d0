#ifndef HOLDFAST_SOCKETS_H
#define HOLDFAST_SOCKETS_H

#include <stdint.h>

/// Whether a TCP socket of `family`, `AF_INET` or `AF_INET6`, listens on `port`: 1 or 0, or -1 if the kernel does not tell.
///
/// It asks only for listeners, because reading `/proc/net/tcp` walks the table of all possible connections.
int holdfast_is_listening(int family, uint16_t port);

#endif
