#define _GNU_SOURCE
#include "sockets.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { listen_state = 10 };

static int ask(int netlink, int family, uint16_t port) {
  struct {
    struct nlmsghdr header;
    struct inet_diag_req_v2 request;
  } question;
  memset(&question, 0, sizeof question);
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  question.request.sdiag_family = (uint8_t)family;
  question.request.sdiag_protocol = IPPROTO_TCP;
  question.request.idiag_states = 1u << listen_state;
  question.request.id.idiag_sport = htons(port);
  return send(netlink, &question, sizeof question, 0) == (ssize_t)sizeof question ? 0 : -1;
}

/// Reads answers up to the last one.
static int await_answer(int netlink, uint16_t port) {
  union {
    struct nlmsghdr header;
    char bytes[8192];
  } answer;
  int found = 0;
  for (;;) {
    ssize_t count = recv(netlink, &answer, sizeof answer, 0);
    if (count <= 0) return -1;
    size_t left = (size_t)count;
    for (struct nlmsghdr *message = &answer.header; NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_type == NLMSG_DONE) return found;
      if (message->nlmsg_type != SOCK_DIAG_BY_FAMILY) return -1;
      if (message->nlmsg_len < NLMSG_LENGTH(sizeof(struct inet_diag_msg))) return -1;
      const struct inet_diag_msg *listener = NLMSG_DATA(message);
      if (listener->idiag_state == listen_state && listener->id.idiag_sport == htons(port)) found = 1;
    }
  }
}

int holdfast_is_listening(int family, uint16_t port) {
  int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (netlink < 0) return -1;
  struct timeval patience = {1, 0};
  setsockopt(netlink, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  int answer = ask(netlink, family, port) == 0 ? await_answer(netlink, port) : -1;
  close(netlink);
  return answer;
}
