#ifndef HOLDFAST_UNDUMPABLE_H
#define HOLDFAST_UNDUMPABLE_H

/// Makes this process one that is not dumped and that its own user can neither trace nor read: 0, or -1 with `errno`.
///
/// Source: PR_SET_DUMPABLE(2const).
int holdfast_make_undumpable(void);

#endif
