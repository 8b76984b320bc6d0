#ifndef HOLDFAST_CHILD_H
#define HOLDFAST_CHILD_H

#include <sys/types.h>

/// Starts the program at `path`, without arguments, in a process group of its own. `input` becomes its standard input and
/// `output` its standard output; it shares this process's standard error, and has no other descriptor. Every signal has its
/// default action in it. The kernel kills it when the calling thread ends.
///
/// Returns the process's id, or -1 with the `errno` of the step that failed, such as that of execve(2).
/// Source: PR_SET_PDEATHSIG(2const), close_range(2).
pid_t holdfast_start_child(
    const char *_Nonnull path, char *_Nullable const *_Nonnull environment, int input, int output);

/// Waits until a child has ended, at most that many milliseconds; it stays a zombie. Returns 1 if it has ended, 0 if not, and
/// -1 with `errno` if there is no such child.
///
/// Source: pidfd_open(2).
int holdfast_await_child(pid_t child, int milliseconds);

/// Kills the process group of a child and waits until the child has ended. Returns its status as in waitpid(2), or -1 if
/// somebody else has waited for it.
int holdfast_end_child(pid_t child);

/// Blocks SIGPIPE in the calling thread, so that writing to a peer that has ended fails with `EPIPE`.
void holdfast_block_broken_pipe(void);

/// Makes a pipe whose two ends no program that another thread starts meanwhile gets. Returns 0, or -1 with `errno`.
int holdfast_pipe(int *_Nonnull ends);

/// Writes as write(2) does. A peer that has ended gives `EPIPE`, and its signal does not reach the process, whatever the mask of the
/// calling thread.
ssize_t holdfast_write_without_signal(int descriptor, const void *_Nullable bytes, size_t count);

#endif
