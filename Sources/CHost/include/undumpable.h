#ifndef HOLDFAST_UNDUMPABLE_H
#define HOLDFAST_UNDUMPABLE_H

/// Makes this process undumpable, so that its own user can neither trace nor read it. Returns 0, or -1 with `errno`.
///
/// Source: PR_SET_DUMPABLE(2const).
int holdfast_make_undumpable(void);

/// Whether this process is dumpable although ``holdfast_make_undumpable`` succeeded: 1 or 0, and 0 if it was not called.
///
/// A supervisor behind a seccomp filter can report success for a call that was never made. Therefore the function asks the
/// kernel a second time, and checks that root now owns the process's files in `/proc`: the supervisor must forge each answer.
/// Source: PR_GET_DUMPABLE(2const), proc(5).
int holdfast_is_still_dumpable(void);

#endif
