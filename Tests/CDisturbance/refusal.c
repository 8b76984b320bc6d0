#define _GNU_SOURCE
#include "disturbance.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
  const char *name;
  int number;
} calls[] = {
    {"openat", SYS_openat},       {"pread64", SYS_pread64},   {"getdents64", SYS_getdents64},
    {"socket", SYS_socket},       {"fstatfs", SYS_fstatfs},   {"ioctl", SYS_ioctl},
    {"readlinkat", SYS_readlinkat}, {"openat2", SYS_openat2},
};

static int number_of(const char *name) {
  for (size_t index = 0; index < sizeof calls / sizeof calls[0]; index++)
    if (strcmp(calls[index].name, name) == 0) return calls[index].number;
  return -1;
}

/// Gives this thread, and those that it starts, a filter that answers two system calls with `action`.
static int filter(int number, int other, uint32_t action, unsigned flags) {
  struct sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)other, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, action),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog whole = {sizeof program / sizeof program[0], program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &whole);
}

int disturb_by_refusing_call(const char *name, int error) {
  int number = number_of(name);
  if (number < 0) return -1;
  return filter(number, number, SECCOMP_RET_ERRNO | (uint32_t)error, 0);
}

struct refusal {
  const char *prefix;
  int error;
  int listener;
  sem_t is_listening;
};

/// Whether a call opens what is refused. `openat2` is asked for what follows `/proc/`.
static int is_refused(const struct seccomp_data *call, const char *prefix) {
  static const char proc[] = "/proc/";
  size_t skipped = 0;
  if (call->nr == SYS_openat2) {
    skipped = sizeof proc - 1;
    if (strncmp(prefix, proc, skipped) != 0) return 0;
  }
  return strncmp((const char *)(uintptr_t)call->args[1], prefix + skipped, strlen(prefix) - skipped) == 0;
}

/// Answers each `openat` and `openat2`: the refused one by its error, every other by the kernel itself. Runs without the filter.
static void *supervise(void *context) {
  struct refusal *refusal = context;
  sem_wait(&refusal->is_listening);
  for (;;) {
    struct seccomp_notif call;
    memset(&call, 0, sizeof call);
    if (ioctl(refusal->listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) continue;
    struct seccomp_notif_resp answer = {.id = call.id};
    if (is_refused(&call.data, refusal->prefix)) {
      answer.error = -refusal->error;
    } else {
      answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    }
    ioctl(refusal->listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
  }
  return NULL;
}

int disturb_by_lying_of_dumpable(int always) {
  struct sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_DUMPABLE, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, always ? PR_GET_DUMPABLE : PR_SET_DUMPABLE, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog whole = {sizeof program / sizeof program[0], program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &whole);
}

/// Answers each `prctl`: the wish not to be dumpable by yes, every other by the kernel itself. Runs without the filter.
static void *supervise_dumpable(void *context) {
  struct refusal *supervision = context;
  sem_wait(&supervision->is_listening);
  for (;;) {
    struct seccomp_notif call;
    memset(&call, 0, sizeof call);
    if (ioctl(supervision->listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) continue;
    struct seccomp_notif_resp answer = {.id = call.id};
    if (call.data.args[0] != PR_SET_DUMPABLE) answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    ioctl(supervision->listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
  }
  return NULL;
}

int disturb_by_supervising_dumpable(void) {
  static struct refusal supervision;
  pthread_t thread;
  if (sem_init(&supervision.is_listening, 0, 0) != 0) return -1;
  if (pthread_create(&thread, NULL, supervise_dumpable, &supervision) != 0) return -1;
  supervision.listener = filter(SYS_prctl, SYS_prctl, SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER);
  if (supervision.listener < 0) return -1;
  return sem_post(&supervision.is_listening);
}

int disturb_by_refusing_path(const char *prefix, int error) {
  static struct refusal refusal;
  pthread_t thread;
  refusal.prefix = prefix;
  refusal.error = error;
  if (sem_init(&refusal.is_listening, 0, 0) != 0) return -1;
  if (pthread_create(&thread, NULL, supervise, &refusal) != 0) return -1;
  refusal.listener = filter(SYS_openat, SYS_openat2, SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER);
  if (refusal.listener < 0) return -1;
  return sem_post(&refusal.is_listening);
}
