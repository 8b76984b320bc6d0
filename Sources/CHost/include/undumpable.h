#ifndef HOLDFAST_UNDUMPABLE_H
#define HOLDFAST_UNDUMPABLE_H

/// Makes this process one that is not dumped and that its own user can neither trace nor read: 0, or -1 with `errno`.
///
/// Source: PR_SET_DUMPABLE(2const).
int holdfast_make_undumpable(void);

/// Whether this process is dumpable although ``holdfast_make_undumpable`` was told otherwise: 1 or 0, and 0 where it was not called.
///
/// Somebody who answers system calls by a seccomp filter can say that a call worked that was never made. The kernel is asked a
/// second time, and its files of this process are looked at, which become root's with the change: each is one more lie to tell.
/// Source: PR_GET_DUMPABLE(2const), proc(5).
int holdfast_is_still_dumpable(void);

#endif
