#ifndef HOLDFAST_PROCFS_H
#define HOLDFAST_PROCFS_H

/// Opens for reading what the file system at `/proc` has under `path`, which is what follows `/proc/`. Nothing may be mounted
/// on the way from there, nor on the file itself: any user can mount another process's files over those of this one.
///
/// Returns a descriptor, or -1 with `errno`: `EXDEV` where something is mounted, `ENOSYS` from Linux before 5.6.
/// Source: openat2(2), `RESOLVE_NO_XDEV`.
int holdfast_open_proc(const char *path);

/// The same for a symbolic link itself, for readlinkat(2) alone: it may lead to another file system.
int holdfast_open_proc_link(const char *path);

#endif
