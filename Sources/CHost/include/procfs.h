#ifndef HOLDFAST_PROCFS_H
#define HOLDFAST_PROCFS_H

/// Opens a file of `/proc` for reading. `path` is the part after `/proc/`. Nothing may be mounted on the way to the file or on
/// the file itself, because any user can mount another process's files over those of this one.
///
/// Returns a descriptor, or -1 with `errno`: `EXDEV` if something is mounted there, `ENOSYS` on Linux before 5.6.
/// Source: openat2(2), `RESOLVE_NO_XDEV`.
int holdfast_open_proc(const char *path);

/// Opens a symbolic link itself in the same way, only for readlinkat(2). The link may lead to another file system.
int holdfast_open_proc_link(const char *path);

#endif
