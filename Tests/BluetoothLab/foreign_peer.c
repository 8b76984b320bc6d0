// A Bluetooth client that shares nothing with Holdfast: it connects only by the kernel's sockets and does the steps it is told.
//
// usage: foreign_peer l2cap|rfcomm|le|link LOCAL PEER PORT [mtu:BYTES] [peers:COUNT] STEP...
//
// LOCAL and PEER are addresses. `link` is a link by Low Energy without a channel that is asked for: it has the one that each link has
// (ATT), whatever PORT says. `mtu:` is the largest packet taken (L2CAP over BR/EDR); `peers:` makes that many connections and does the
// steps on each of them in turn. Steps:
//   read          waits for bytes, at most 20 seconds, and prints them in hex, or "closed", or "silent"
//   send:HEX      sends bytes, as one packet where there are packets
//   fill:COUNT    sends that many bytes of 0x5a at once, in one packet where there are packets
//   until-closed  reads and prints until the other end has closed the connection, at most 60 seconds
//   hold          keeps the connections until the process is ended
// The connections end when the steps are done. Exit status 0 when every step could be done, 1 otherwise, with the reason on standard error.

#include <bluetooth/bluetooth.h>
#include <bluetooth/l2cap.h>
#include <bluetooth/rfcomm.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

// Source: Bluetooth Core 5.4, volume 3 part A, section 2.1, of the fixed channels.
enum { ATTRIBUTES = 4 };
enum { MOST_BYTES = 70000, MOST_PEERS = 256 };
static unsigned char bytes[MOST_BYTES];

static int failed(const char *what) {
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  return 1;
}

static int connected(const char *kind, const char *local, const char *peer, unsigned port, unsigned mtu) {
  struct sockaddr_l2 near = {.l2_family = AF_BLUETOOTH}, far = {.l2_family = AF_BLUETOOTH, .l2_psm = htobs(port)};
  struct sockaddr_rc near_stream = {.rc_family = AF_BLUETOOTH}, far_stream = {.rc_family = AF_BLUETOOTH, .rc_channel = port};
  if (strcmp(kind, "rfcomm") == 0) {
    int stream = socket(AF_BLUETOOTH, SOCK_STREAM, BTPROTO_RFCOMM);
    str2ba(local, &near_stream.rc_bdaddr);
    str2ba(peer, &far_stream.rc_bdaddr);
    if (stream < 0 || bind(stream, (struct sockaddr *)&near_stream, sizeof near_stream) < 0) return -1;
    return connect(stream, (struct sockaddr *)&far_stream, sizeof far_stream) < 0 ? -1 : stream;
  }
  int packets = socket(AF_BLUETOOTH, SOCK_SEQPACKET, BTPROTO_L2CAP), room = 1 << 20;
  near.l2_bdaddr_type = far.l2_bdaddr_type = *kind == 'l' && kind[1] != '2' ? BDADDR_LE_PUBLIC : BDADDR_BREDR;
  if (strcmp(kind, "link") == 0) far.l2_psm = 0, near.l2_cid = far.l2_cid = htobs(ATTRIBUTES);
  str2ba(local, &near.l2_bdaddr);
  str2ba(peer, &far.l2_bdaddr);
  if (packets < 0 || bind(packets, (struct sockaddr *)&near, sizeof near) < 0) return -1;
  // The largest packet is in the queue as a whole before any part of it is sent.
  if (setsockopt(packets, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room) < 0) return -1;
  if (mtu) {
    struct l2cap_options options;
    socklen_t size = sizeof options;
    if (getsockopt(packets, SOL_L2CAP, L2CAP_OPTIONS, &options, &size) < 0) return -1;
    options.imtu = mtu;
    if (setsockopt(packets, SOL_L2CAP, L2CAP_OPTIONS, &options, sizeof options) < 0) return -1;
  }
  return connect(packets, (struct sockaddr *)&far, sizeof far) < 0 ? -1 : packets;
}

// Prints what came. Returns 1 where something did, 0 where the connection is closed, -1 where nothing came in time.
static int print_next(int peer, int milliseconds) {
  struct pollfd wait = {.fd = peer, .events = POLLIN};
  if (poll(&wait, 1, milliseconds) == 0) return puts("silent"), -1;
  ssize_t count = read(peer, bytes, sizeof bytes);
  // Linux tells of the end of a packet socket once before what came earlier, as a reset or as no bytes.
  if (count <= 0) count = recv(peer, bytes, sizeof bytes, MSG_DONTWAIT);
  if (count <= 0) return puts("closed"), 0;
  for (ssize_t i = 0; i < count; i++) printf("%02x", bytes[i]);
  puts("");
  return 1;
}

static int until_closed(int peer) {
  time_t end = time(NULL) + 60;
  for (time_t now = time(NULL); now < end; now = time(NULL)) {
    int result = print_next(peer, (int)(end - now) * 1000);
    if (result <= 0) return result;
  }
  return -1;
}

static int sent(int peer, size_t count) {
  return send(peer, bytes, count, MSG_NOSIGNAL) == (ssize_t)count ? 0 : failed("send");
}

static size_t from_hex(const char *text) {
  size_t count = 0;
  while (count < sizeof bytes && sscanf(text + 2 * count, "%2hhx", &bytes[count]) == 1) count++;
  return count;
}

static int done(const char *step, int peer) {
  if (strcmp(step, "read") == 0) return print_next(peer, 20000) < 0;
  if (strcmp(step, "until-closed") == 0) return until_closed(peer) != 0;
  if (strcmp(step, "hold") == 0) return pause();
  if (strncmp(step, "send:", 5) == 0) return sent(peer, from_hex(step + 5));
  if (strncmp(step, "fill:", 5) == 0) {
    memset(bytes, 0x5a, sizeof bytes);
    return sent(peer, (size_t)atoi(step + 5));
  }
  fprintf(stderr, "no such step: %s\n", step);
  return 1;
}

int main(int count, char **words) {
  unsigned mtu = 0, peers = 1;
  int step = 5, open[MOST_PEERS];
  if (count < 6) return fputs("usage: foreign_peer KIND LOCAL PEER PORT STEP...\n", stderr), 64;
  for (; step < count; step++)
    if (sscanf(words[step], "mtu:%u", &mtu) != 1 && sscanf(words[step], "peers:%u", &peers) != 1) break;
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (unsigned i = 0; i < peers && i < MOST_PEERS; i++)
    if ((open[i] = connected(words[1], words[2], words[3], (unsigned)strtoul(words[4], NULL, 0), mtu)) < 0) return failed("connect");
  for (; step < count; step++)
    for (unsigned i = 0; i < peers && i < MOST_PEERS; i++)
      if (done(words[step], open[i]) != 0) return 1;
  return 0;
}
