// Lets a controller of BlueZ's emulator have several links at once: loaded into btvirt by LD_PRELOAD.
//
// A connection handle is each controller's own number for a link. The emulator (5.66 and later) passes ACL packets, the peripheral's
// "connection complete" and the request for a long term key on with the sender's handle, so a controller's second link carries nothing
// unless both ends happen to count alike. Here such a handle is put right on its way to the host. Which two ends make a link is learnt from
// the events that tell the hosts of it: the emulator, which has one thread, writes the two directly one after the other.
//
// Source: Bluetooth Core 5.4, volume 4 part E, sections 5.4.2 (ACL data packets), 7.7.3, 7.7.5, 7.7.65.1, 7.7.65.5 and 7.7.65.10.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { ACL_PACKET = 2, EVENT_PACKET = 4, ENDS = 256, LARGEST_PACKET = 4096 };
enum { CONNECTION_COMPLETE = 0x03, DISCONNECTION_COMPLETE = 0x05, COMMAND_COMPLETE = 0x0e, LE_META = 0x3e, ACL_LINK = 1, RESET = 0x0c03 };
enum { LE_CONNECTION_COMPLETE = 0x01, LE_LONG_TERM_KEY_REQUEST = 0x05, LE_ENHANCED_CONNECTION_COMPLETE = 0x0a, PERIPHERAL = 1 };
// Of LE Supported States: connectable advertising in addition to a link as the peripheral. Source: the same, section 7.8.27.
enum { READ_STATES = 0x201c, CONNECTABLE_BESIDE_LINK = 38 };
enum { FIRST_HANDLE = 42, HANDLE_BITS = 0x0fff };

// One end of a link, at the host that the descriptor leads to; free where that is 0.
static struct end {
  int descriptor;
  uint16_t handle;
  struct end *other;
} ends[ENDS];

// Of a link whose other end is not known yet.
static struct end *unpaired;

// Whose packet the emulator is working on.
static int sender;

static uint16_t handle_at(const uint8_t *bytes) { return (bytes[0] | bytes[1] << 8) & HANDLE_BITS; }

static void put_handle(uint8_t *bytes, uint16_t handle) {
  bytes[0] = handle & 0xff;
  bytes[1] = (bytes[1] & 0xf0) | handle >> 8;
}

static struct end *end_of(int descriptor, uint16_t handle) {
  for (struct end *end = ends; end < ends + ENDS; end++)
    if (end->descriptor == descriptor && end->handle == handle) return end;
  return NULL;
}

static void learn_end(int descriptor, uint16_t handle) {
  struct end *end = end_of(0, 0);
  if (!end) return;
  *end = (struct end){descriptor, handle, unpaired};
  if (unpaired) unpaired->other = end;
  unpaired = unpaired ? NULL : end;
}

static void forget_end(struct end *end) {
  if (!end) return;
  if (end->other) end->other->other = NULL;
  if (unpaired == end) unpaired = NULL;
  *end = (struct end){0};
}

static void forget_host(int descriptor) {
  for (struct end *end = ends; end < ends + ENDS; end++)
    if (end->descriptor == descriptor) forget_end(end);
}

// The number that the emulator has given the peripheral's end, and does not tell it.
static uint16_t lowest_free_handle(int descriptor) {
  uint16_t handle = FIRST_HANDLE;
  while (end_of(descriptor, handle)) handle++;
  return handle;
}

// A handle that is the sender's becomes the receiver's.
static void translate(int receiver, uint8_t *handle) {
  struct end *end = end_of(sender, handle_at(handle));
  if (end && end->other && end->other->descriptor == receiver) put_handle(handle, end->other->handle);
}

// Parameters: subevent, status, handle, role where it tells of a connection; subevent, handle where it asks for a key.
static void low_energy_event(int receiver, uint8_t *parameters, size_t length) {
  if (parameters[0] == LE_LONG_TERM_KEY_REQUEST) return translate(receiver, parameters + 1);
  if (parameters[0] != LE_CONNECTION_COMPLETE && parameters[0] != LE_ENHANCED_CONNECTION_COMPLETE) return;
  if (length < 5 || parameters[1] != 0) return;
  if (parameters[4] == PERIPHERAL) put_handle(parameters + 2, lowest_free_handle(receiver));
  learn_end(receiver, handle_at(parameters + 2));
}

// An event for a host, from its code on.
static void event(int receiver, uint8_t *code, size_t length) {
  uint8_t *parameters = code + 2;
  if (length < 5) return;
  switch (*code) {
  case LE_META: return low_energy_event(receiver, parameters, length - 2);
  case CONNECTION_COMPLETE:
    if (length > 11 && parameters[0] == 0 && parameters[9] == ACL_LINK) learn_end(receiver, handle_at(parameters + 1));
    return;
  case DISCONNECTION_COMPLETE:
    if (parameters[0] == 0) forget_end(end_of(receiver, handle_at(parameters + 1)));
    return;
  case COMMAND_COMPLETE:
    if ((parameters[1] | parameters[2] << 8) == RESET) forget_host(receiver);
    // A radio that is begun with ONE_LINK has controllers that cannot advertise while they have a link.
    if ((parameters[1] | parameters[2] << 8) == READ_STATES && length >= 14 && getenv("ONE_LINK"))
      parameters[4 + CONNECTABLE_BESIDE_LINK / 8] &= (uint8_t)~(1 << CONNECTABLE_BESIDE_LINK % 8);
    return;
  }
}

// Copies the pieces into `packet` and puts them right. Returns how many bytes are to be passed on in their place, or 0.
static size_t gather(int receiver, const struct iovec *pieces, size_t count, uint8_t *packet) {
  size_t length = 0;
  for (size_t i = 0; i < count; i++) {
    if (pieces[i].iov_len > LARGEST_PACKET - length) return 0;
    memcpy(packet + length, pieces[i].iov_base, pieces[i].iov_len);
    length += pieces[i].iov_len;
  }
  if (length > 1 && packet[0] == EVENT_PACKET) event(receiver, packet + 1, length - 1);
  if (length > 4 && packet[0] == ACL_PACKET) translate(receiver, packet + 1);
  return length;
}

ssize_t writev(int descriptor, const struct iovec *pieces, int count) {
  static ssize_t (*next)(int, const struct iovec *, int);
  if (!next) next = (ssize_t(*)(int, const struct iovec *, int))dlsym(RTLD_NEXT, "writev");
  uint8_t packet[LARGEST_PACKET];
  size_t length = gather(descriptor, pieces, (size_t)count, packet);
  struct iovec whole = {packet, length};
  return length ? next(descriptor, &whole, 1) : next(descriptor, pieces, count);
}

ssize_t sendmsg(int descriptor, const struct msghdr *message, int flags) {
  static ssize_t (*next)(int, const struct msghdr *, int);
  if (!next) next = (ssize_t(*)(int, const struct msghdr *, int))dlsym(RTLD_NEXT, "sendmsg");
  uint8_t packet[LARGEST_PACKET];
  size_t length = gather(descriptor, message->msg_iov, message->msg_iovlen, packet);
  struct iovec whole = {packet, length};
  struct msghdr changed = *message;
  if (length) changed.msg_iov = &whole, changed.msg_iovlen = 1;
  return next(descriptor, &changed, flags);
}

ssize_t read(int descriptor, void *buffer, size_t size) {
  static ssize_t (*next)(int, void *, size_t);
  if (!next) next = (ssize_t(*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
  ssize_t length = next(descriptor, buffer, size);
  if (length > 0) sender = descriptor;
  return length;
}

ssize_t recv(int descriptor, void *buffer, size_t size, int flags) {
  static ssize_t (*next)(int, void *, size_t, int);
  if (!next) next = (ssize_t(*)(int, void *, size_t, int))dlsym(RTLD_NEXT, "recv");
  ssize_t length = next(descriptor, buffer, size, flags);
  if (length > 0) sender = descriptor;
  return length;
}
