#ifndef HOLDFAST_DISTURBANCE_H
#define HOLDFAST_DISTURBANCE_H

// What an attacker does to a process. Each returns 0, or -1 with `errno`.

/// Makes the parent this process's tracer.
int disturb_by_tracer(void);
/// Attaches a tracer, a forked child that stays until this process ends, to one more thread and not to the first.
int disturb_by_thread_tracer(void);
/// Maps one page of anonymous executable memory.
int disturb_by_anonymous_code(void);
/// Maps the executable's first page once more, executable.
int disturb_by_mapped_file(void);
/// Changes one byte of code with `mprotect`, and protects it again.
int disturb_by_text_patch(void);
/// Changes one byte of code through `/proc/self/mem`.
int disturb_by_memory_file(void);
/// Changes and restores one byte of code, leaving a private copy of the page and split mappings.
int disturb_and_restore_text(void);
/// Starts a thread of that name, which stays.
int disturb_by_thread(const char *name);
/// Changes the protection of a page of code to executable only, which still reads the same.
int disturb_by_execute_only(void);
/// Makes a page of code writable, and leaves it as it is.
int disturb_by_writable_code(void);
/// Has another thread patch the text in the middle of the next measurement, when that waits for the loader's lock.
int disturb_meanwhile(void);
/// Loads a library that is there wherever the C library is.
int disturb_by_dlopen(void);
/// Overwrites every `LD_PRELOAD` in the environment that the kernel shows.
int disturb_by_forgetting_preload(void);
/// Has a child attach, change one word of code, and detach.
int disturb_by_poke(void);
/// Writes to a page of the code that the kernel gives to every process, and leaves it as it was.
int disturb_by_kernel_code(void);
/// Puts a copy of a file in its place; a null path is the executable's own.
int disturb_by_replacing(const char *path);
/// Removes the executable file.
int disturb_by_deleting(void);
/// Mounts a plain file over a file of `/proc/self`, in a mount namespace of its own.
int disturb_by_mounting_over(const char *path);
/// Mounts a file of another process, a child that waits, over the same file of this one; its whole folder for an empty name.
int disturb_by_mounting_process(const char *name);
/// Mounts a symbolic link to a plain file over one of `/proc/self`.
int disturb_by_mounting_link(const char *path);
/// Goes on as a child; the parent waits for it, and ends as it did.
int disturb_by_fork(void);
/// Starts threads that end at once, again and again.
int disturb_by_short_threads(void);
/// Lets one system call fail with `error` from now on, by a seccomp filter.
int disturb_by_refusing_call(const char *name, int error);
/// Lets each `openat` or `openat2` of a path that begins with `prefix` fail with `error` from now on, by a seccomp filter. `prefix` stays.
int disturb_by_refusing_path(const char *prefix, int error);
/// Lets the wish to be not dumpable succeed without effect from now on, by a seccomp filter; `always` lies about the state as well.
int disturb_by_lying_of_dumpable(int always);
/// The same by a supervisor, which lets the kernel answer every other prctl(2).
int disturb_by_supervising_dumpable(void);

#endif
