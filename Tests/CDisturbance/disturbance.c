#define _GNU_SOURCE
#include "disturbance.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/// A page of code that nothing runs.
__attribute__((used, aligned(4096), section(".text.disturbed"))) static void disturbed(void) {
  __asm__ __volatile__(".fill 4096, 1, 0x90");
}

static uint8_t *page(void) { return (uint8_t *)(((uintptr_t)disturbed + 64) & ~(uintptr_t)4095); }

static int protect(int protection) { return mprotect(page(), 4096, protection); }

int disturb_by_tracer(void) { return (int)ptrace(PTRACE_TRACEME, 0, NULL, NULL); }

int disturb_by_anonymous_code(void) {
  void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return code == MAP_FAILED ? -1 : 0;
}

int disturb_by_mapped_file(void) {
  int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
  close(file);
  return code == MAP_FAILED ? -1 : 0;
}

int disturb_by_text_patch(void) {
  if (protect(PROT_READ | PROT_WRITE) != 0) return -1;
  page()[100] ^= 1;
  return protect(PROT_READ | PROT_EXEC);
}

int disturb_and_restore_text(void) {
  if (disturb_by_text_patch() != 0) return -1;
  return disturb_by_text_patch();
}

int disturb_by_memory_file(void) {
  int file = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  if (file < 0) return -1;
  uint8_t byte = page()[100] ^ 1;
  ssize_t count = pwrite(file, &byte, 1, (off_t)(uintptr_t)(page() + 100));
  close(file);
  return count == 1 ? 0 : -1;
}

int disturb_by_execute_only(void) { return protect(PROT_EXEC); }

static sem_t started;
static pid_t started_thread;

static void *stay(void *name) {
  prctl(PR_SET_NAME, name, 0, 0, 0);
  started_thread = (pid_t)syscall(SYS_gettid);
  sem_post(&started);
  for (;;) pause();
  return NULL;
}

int disturb_by_thread(const char *name) {
  pthread_t thread;
  if (sem_init(&started, 0, 0) != 0) return -1;
  if (pthread_create(&thread, NULL, stay, (void *)name) != 0) return -1;
  return sem_wait(&started);
}

/// The tracer: attaches, reports, and ends when its parent does.
static void trace(pid_t thread, int report) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  char outcome = ptrace(PTRACE_SEIZE, thread, NULL, NULL) == 0 ? 0 : 1;
  if (write(report, &outcome, 1) != 1) _exit(1);
  for (;;) pause();
}

int disturb_by_thread_tracer(void) {
  int pipes[2];
  if (disturb_by_thread("worker") != 0 || pipe(pipes) != 0) return -1;
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  pid_t child = fork();
  if (child < 0) return -1;
  if (child == 0) trace(started_thread, pipes[1]);
  char outcome = 1;
  if (read(pipes[0], &outcome, 1) != 1) return -1;
  close(pipes[0]);
  close(pipes[1]);
  return outcome == 0 ? 0 : -1;
}
