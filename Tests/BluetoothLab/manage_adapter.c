// An adapter of the guest, by the kernel's management interface: one process in place of a dozen, each of which takes its time under emulation.
//
// usage: manage_adapter ready INDEX     waits until the kernel knows the adapter, and makes it ready for BR/EDR and LE
//        manage_adapter address INDEX   prints its address
//        manage_adapter agent INDEX     accepts every pairing from now on, by a process in the background
//        manage_adapter alone INDEX     waits until the adapter has no link
//
// Exit status 0 if that could be done in time, 1 otherwise, with the reason on standard error.
//
// Source: BlueZ, doc/mgmt-api.txt.

#include <bluetooth/bluetooth.h>
#include <bluetooth/hci.h>
#include <bluetooth/hci_lib.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { COMPLETE = 0x0001, STATUS = 0x0002, INDEX_ADDED = 0x0004, USER_CONFIRMATION = 0x000f };
enum { READ_INDICES = 0x0003, READ_INFORMATION = 0x0004, CONFIRM = 0x001c, NO_INDEX = 0xffff };
enum { MOST_SECONDS = 60, POLL_MICROSECONDS = 20000, ADDRESS_AND_TYPE = 7, MOST_LINKS = 32 };

// What makes an adapter ready, in this order.
static const struct {
  const char *name;
  uint16_t code, size;
  uint8_t parameters[3];
} settings[] = {
  {"powered off", 0x0005, 1, {0}},
  {"low energy", 0x000d, 1, {1}},
  {"connectable", 0x0007, 1, {1}},
  {"bondable", 0x0009, 1, {1}},
  {"secure simple pairing", 0x000b, 1, {1}},
  {"neither display nor keyboard", 0x0018, 1, {3}},
  {"powered", 0x0005, 1, {1}},
  {"discoverable", 0x0006, 3, {1, 0, 0}},
};

// Of a command or an event: its code, the adapter, the size and the bytes of its parameters; all numbers little-endian.
struct packet {
  uint16_t code, index, size;
  uint8_t parameters[1024];
} __attribute__((packed));

// An event that answers a command begins with this.
struct answer {
  uint16_t code;
  uint8_t status, result[];
} __attribute__((packed));

// What the process waits for.
static const char *awaited = "";

static void give_up(int signal) {
  (void)signal;
  dprintf(STDERR_FILENO, "waited for too long: %s\n", awaited);
  _exit(1);
}

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static int management(void) {
  struct sockaddr_hci address = {.hci_family = AF_BLUETOOTH, .hci_dev = HCI_DEV_NONE, .hci_channel = HCI_CHANNEL_CONTROL};
  int opened = socket(AF_BLUETOOTH, SOCK_RAW | SOCK_CLOEXEC, BTPROTO_HCI);
  if (opened < 0 || bind(opened, (struct sockaddr *)&address, sizeof address) < 0) fail("management interface");
  return opened;
}

static struct packet *next_event(int manager) {
  static struct packet event;
  if (read(manager, &event, sizeof event) < 6) fail("event");
  return &event;
}

static void command(int manager, uint16_t index, uint16_t code, const void *parameters, uint16_t size) {
  struct packet packet = {code, index, size, {0}};
  memcpy(packet.parameters, parameters, size);
  if (write(manager, &packet, 6 + size) < 0) fail("command");
}

// Does a command, and returns what it answers. `name` says what has failed.
static struct answer *done(int manager, uint16_t index, uint16_t code, const void *parameters, uint16_t size, const char *name) {
  command(manager, index, code, parameters, size);
  awaited = name;
  while (1) {
    struct packet *event = next_event(manager);
    struct answer *answer = (struct answer *)event->parameters;
    if ((event->code != COMPLETE && event->code != STATUS) || event->index != index || answer->code != code) continue;
    if (answer->status == 0) return answer;
    fprintf(stderr, "%s: status %d of the management interface\n", name, answer->status);
    exit(1);
  }
}

static void wait_until_known(int manager, uint16_t index) {
  const uint8_t *known = done(manager, NO_INDEX, READ_INDICES, "", 0, "adapters")->result;
  for (unsigned number = 0; number < (unsigned)(known[0] | known[1] << 8); number++)
    if ((known[2 + 2 * number] | known[3 + 2 * number] << 8) == index) return;
  struct packet *event;
  awaited = "the adapter";
  do event = next_event(manager);
  while (event->code != INDEX_ADDED || event->index != index);
}

static void wait_until_running(uint16_t index) {
  int raw = socket(AF_BLUETOOTH, SOCK_RAW, BTPROTO_HCI);
  struct hci_dev_info info = {.dev_id = index};
  const uint32_t wanted = 1 << HCI_UP | 1 << HCI_RUNNING | 1 << HCI_PSCAN;
  awaited = "running";
  while (ioctl(raw, HCIGETDEVINFO, &info) < 0 || (info.flags & wanted) != wanted) usleep(POLL_MICROSECONDS);
}

static void make_ready(uint16_t index) {
  int manager = management();
  wait_until_known(manager, index);
  for (size_t number = 0; number < sizeof settings / sizeof *settings; number++)
    done(manager, index, settings[number].code, settings[number].parameters, settings[number].size, settings[number].name);
  wait_until_running(index);
}

static void print_address(uint16_t index) {
  char text[18];
  ba2str((const bdaddr_t *)done(management(), index, READ_INFORMATION, "", 0, "address")->result, text);
  puts(text);
}

static void accept_pairings(uint16_t index) {
  int manager = management();
  pid_t agent = fork();
  if (agent < 0) fail("agent");
  if (agent > 0) return;
  alarm(0);
  while (1) {
    struct packet *event = next_event(manager);
    if (event->code == USER_CONFIRMATION && event->index == index) command(manager, index, CONFIRM, event->parameters, ADDRESS_AND_TYPE);
  }
}

static void wait_until_alone(uint16_t index) {
  static union {
    struct hci_conn_list_req request;
    uint8_t room[sizeof(struct hci_conn_list_req) + MOST_LINKS * sizeof(struct hci_conn_info)];
  } list;
  int raw = socket(AF_BLUETOOTH, SOCK_RAW, BTPROTO_HCI);
  awaited = "the end of links";
  while (1) {
    list.request.dev_id = index, list.request.conn_num = MOST_LINKS;
    if (ioctl(raw, HCIGETCONNLIST, &list) < 0) fail("links");
    if (list.request.conn_num == 0) return;
    usleep(POLL_MICROSECONDS);
  }
}

int main(int count, char **words) {
  if (count != 3) return 2;
  signal(SIGALRM, give_up);
  alarm(MOST_SECONDS);
  uint16_t index = atoi(words[2]);
  if (strcmp(words[1], "ready") == 0) make_ready(index);
  else if (strcmp(words[1], "address") == 0) print_address(index);
  else if (strcmp(words[1], "agent") == 0) accept_pairings(index);
  else if (strcmp(words[1], "alone") == 0) wait_until_alone(index);
  else return 2;
  return 0;
}
