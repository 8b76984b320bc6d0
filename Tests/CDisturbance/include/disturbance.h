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

#endif
