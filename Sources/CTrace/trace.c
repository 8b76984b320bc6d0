#include "trace.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static void run(char *const *arguments, char *const *environment, int output) {
  sigset_t none;
  sigemptyset(&none);
  if (sigprocmask(SIG_SETMASK, &none, NULL) != 0) _exit(127);
  // Nobody waits for it without its tracer.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) _exit(127);
  if (dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0) _exit(127);
  if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(127);
  execve(arguments[0], arguments, environment);
  _exit(127);
}

int holdfast_run_traced(char *const *arguments, char *const *environment, int output) {
  pid_t child = fork();
  if (child < 0) return -1;
  if (child == 0) run(arguments, environment, output);
  for (;;) {
    int status;
    pid_t waited = waitpid(child, &status, 0);
    if (waited < 0 && errno == EINTR) continue;
    if (waited < 0) return -1;
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    if (WIFSIGNALED(status)) return -1;
    int number = WSTOPSIG(status);
    ptrace(PTRACE_CONT, child, NULL, (void *)(long)(number == SIGTRAP ? 0 : number));
  }
}
