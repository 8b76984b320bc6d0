#define _GNU_SOURCE
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/// The descriptor on which the child reports a failure. execve(2) closes it.
enum { report_descriptor = 3 };

/// Ends the child, and reports why it could not become the program.
static _Noreturn void give_up(int report) {
  int number = errno;
  ssize_t written = write(report, &number, sizeof number);
  _exit(written < 0 ? 126 : 127);
}

/// Runs in the child, which may only call functions that are safe in a signal handler.
static _Noreturn void become(
    const char *path, char *const *environment, int input, int output, int report, pid_t parent) {
  // Above the numbers that the child keeps, none overwrites another.
  input = fcntl(input, F_DUPFD, report_descriptor + 1);
  output = fcntl(output, F_DUPFD, report_descriptor + 1);
  int original = report;
  report = fcntl(original, F_DUPFD, report_descriptor + 1);
  if (report < 0) give_up(original);
  if (input < 0 || output < 0) give_up(report);
  if (dup2(input, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0) give_up(report);
  if (dup3(report, report_descriptor, O_CLOEXEC) < 0) give_up(report);
  report = report_descriptor;
  if (close_range(report_descriptor + 1, ~0U, 0) < 0) give_up(report);
  if (setpgid(0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) give_up(report);
  // The parent may have ended before the call.
  if (getppid() != parent) _exit(127);
  struct sigaction action = {.sa_handler = SIG_DFL};
  for (int number = 1; number < NSIG; number++) sigaction(number, &action, NULL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  char *arguments[] = {(char *)path, NULL};
  execve(path, arguments, environment);
  give_up(report);
}

/// Reads the `errno` that the child reports; 0 if it has become the program.
static int read_report(int report) {
  int number = 0;
  ssize_t count;
  do count = read(report, &number, sizeof number);
  while (count < 0 && errno == EINTR);
  return count == (ssize_t)sizeof number ? number : 0;
}

pid_t holdfast_start_child(const char *path, char *const *environment, int input, int output) {
  int report[2];
  if (pipe2(report, O_CLOEXEC) < 0) return -1;
  pid_t parent = getpid();
  // A handler of this process must not run in the child.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_t child = fork();
  if (child == 0) become(path, environment, input, output, report[1], parent);
  int number = errno;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  close(report[1]);
  if (child > 0) {
    number = read_report(report[0]);
    if (number != 0) {
      while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
      child = -1;
    }
  }
  close(report[0]);
  if (child < 0) errno = number;
  return child;
}

int holdfast_await_child(pid_t child, int milliseconds) {
  int descriptor = (int)syscall(SYS_pidfd_open, child, 0);
  if (descriptor < 0) return -1;
  struct pollfd ended = {.fd = descriptor, .events = POLLIN};
  int count = poll(&ended, 1, milliseconds);
  int number = errno;
  close(descriptor);
  errno = number;
  return count < 0 && number == EINTR ? 0 : count;
}

int holdfast_end_child(pid_t child) {
  // Until the child has been waited for, no other group can have its number.
  kill(-child, SIGKILL);
  // It may have left its group.
  kill(child, SIGKILL);
  int status = -1;
  pid_t ended;
  do ended = waitpid(child, &status, 0);
  while (ended < 0 && errno == EINTR);
  return ended == child ? status : -1;
}

void holdfast_block_broken_pipe(void) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

int holdfast_pipe(int *ends) { return pipe2(ends, O_CLOEXEC); }

ssize_t holdfast_write_without_signal(int descriptor, const void *bytes, size_t count) {
  sigset_t broken, before, pending;
  sigemptyset(&broken);
  sigaddset(&broken, SIGPIPE);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &broken, &before);
  ssize_t written = write(descriptor, bytes, count);
  int error = errno;
  if (written < 0 && error == EPIPE && !sigismember(&pending, SIGPIPE)) {
    // Takes the signal that the kernel sent to this thread, so that it does not arrive when the mask is restored.
    struct timespec none = {0, 0};
    while (sigtimedwait(&broken, NULL, &none) < 0 && errno == EINTR) {}
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = error;
  return written;
}
