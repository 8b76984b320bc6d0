#define _GNU_SOURCE
#include "disturbance.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/mount.h>
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

/// Changes bits of one byte, whatever protects it.
static int flip(uint8_t *place, uint8_t bits) {
  int file = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  if (file < 0) return -1;
  uint8_t byte = *place ^ bits;
  ssize_t count = pwrite(file, &byte, 1, (off_t)(uintptr_t)place);
  close(file);
  return count == 1 ? 0 : -1;
}

int disturb_by_memory_file(void) { return flip(page() + 100, 1); }

int disturb_by_kernel_code(void) {
  uintptr_t code = getauxval(AT_SYSINFO_EHDR);
  return code == 0 ? -1 : flip((uint8_t *)code + 1000, 0);
}

int disturb_by_execute_only(void) { return protect(PROT_EXEC); }

int disturb_by_writable_code(void) { return protect(PROT_READ | PROT_WRITE | PROT_EXEC); }

static atomic_int holds_loader;

/// Patches the text as soon as the main thread sleeps, which it does when it waits for the loader's lock.
static int patch_when_main_sleeps(struct dl_phdr_info *object, size_t size, void *unused) {
  (void)object, (void)size, (void)unused;
  atomic_store(&holds_loader, 1);
  char path[64], line[512];
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
  for (char state = 'R'; state != 'S';) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t count = read(file, line, sizeof line - 1);
    close(file);
    if (count <= 0) return -1;
    line[count] = 0;
    const char *name_end = strrchr(line, ')');
    state = name_end ? name_end[2] : 'S';
  }
  return disturb_by_text_patch() == 0 ? 1 : -1;
}

static void *hold_loader(void *unused) {
  dl_iterate_phdr(patch_when_main_sleeps, unused);
  return NULL;
}

int disturb_meanwhile(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, hold_loader, NULL) != 0) return -1;
  // Sleeping would end the wait of the other thread.
  while (!atomic_load(&holds_loader)) continue;
  return 0;
}

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

int disturb_by_dlopen(void) { return dlopen("libc_malloc_debug.so.0", RTLD_NOW) == NULL ? -1 : 0; }

int disturb_by_forgetting_preload(void) {
  int count = 0;
  for (char **variable = environ; *variable != NULL; variable++) {
    if (strncmp(*variable, "LD_PRELOAD=", 11) != 0) continue;
    memset(*variable, 'X', strlen(*variable));
    count++;
  }
  return count == 1 ? 0 : -1;
}

/// The child of a poke: 0 when the word was changed.
static int poke(pid_t process) {
  int status;
  if (ptrace(PTRACE_ATTACH, process, NULL, NULL) != 0) return 1;
  if (waitpid(process, &status, __WALL) != process) return 2;
  long word = ptrace(PTRACE_PEEKTEXT, process, page() + 128, NULL);
  if (ptrace(PTRACE_POKETEXT, process, page() + 128, (void *)(word ^ 1)) != 0) return 3;
  return ptrace(PTRACE_DETACH, process, NULL, NULL) == 0 ? 0 : 4;
}

int disturb_by_poke(void) {
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  pid_t process = getpid();
  pid_t child = fork();
  if (child < 0) return -1;
  if (child == 0) _exit(poke(process));
  int status;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

static int own_path(char *path) {
  ssize_t count = readlink("/proc/self/exe", path, PATH_MAX - 1);
  if (count < 0) return -1;
  path[count] = 0;
  return 0;
}

static int copy(const char *from, const char *to) {
  char bytes[65536];
  int source = open(from, O_RDONLY | O_CLOEXEC);
  int target = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
  if (source < 0 || target < 0) return -1;
  ssize_t count;
  while ((count = read(source, bytes, sizeof bytes)) > 0)
    if (write(target, bytes, (size_t)count) != count) return -1;
  close(source);
  return close(target) == 0 && count == 0 ? 0 : -1;
}

int disturb_by_replacing(const char *path) {
  char own[PATH_MAX], fresh[PATH_MAX + 8];
  if (path == NULL && own_path(own) != 0) return -1;
  if (path == NULL) path = own;
  snprintf(fresh, sizeof fresh, "%s.new", path);
  return copy(path, fresh) == 0 ? rename(fresh, path) : -1;
}

int disturb_by_deleting(void) {
  char own[PATH_MAX];
  return own_path(own) == 0 ? unlink(own) : -1;
}

/// A mount namespace of its own, from which nothing spreads.
static int leave_namespace(void) {
  int flags = geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER;
  int result = unshare(flags);
  return result == 0 ? mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) : result;
}

int disturb_by_mounting_over(const char *path) {
  char name[] = "/tmp/holdfast-mounted-XXXXXX";
  int file = mkstemp(name);
  if (file < 0) return -1;
  close(file);
  int result = leave_namespace();
  if (result == 0) result = mount(name, path, NULL, MS_BIND, NULL);
  unlink(name);
  return result;
}

int disturb_by_mounting_process(const char *name) {
  pid_t parent = getpid();
  pid_t child = fork();
  if (child < 0) return -1;
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);
    for (;;) pause();
  }
  char from[64], to[64];
  snprintf(from, sizeof from, "/proc/%d/%s", child, name);
  snprintf(to, sizeof to, "/proc/%d/%s", parent, name);
  return leave_namespace() == 0 ? mount(from, to, NULL, MS_BIND, NULL) : -1;
}

int disturb_by_mounting_link(const char *path) {
  char folder[] = "/tmp/holdfast-mounted-XXXXXX";
  if (mkdtemp(folder) == NULL) return -1;
  char name[64];
  snprintf(name, sizeof name, "%s/link", folder);
  int result = symlink("/bin/sh", name);
  if (result == 0) result = leave_namespace();
  if (result == 0) {
    int link = (int)syscall(SYS_open_tree, AT_FDCWD, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
    result = link < 0 ? -1 : (int)syscall(SYS_move_mount, link, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH);
    close(link);
  }
  unlink(name);
  rmdir(folder);
  return result;
}

int disturb_by_fork(void) {
  pid_t child = fork();
  if (child <= 0) return (int)child;
  int status;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) _exit(3);
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 3);
}

static void *end(void *context) { return context; }

static void *start_and_join(void *context) {
  for (;;) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, end, NULL) == 0) pthread_join(thread, NULL);
  }
  return context;
}

int disturb_by_short_threads(void) {
  pthread_t thread;
  return pthread_create(&thread, NULL, start_and_join, NULL);
}
