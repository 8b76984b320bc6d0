#ifndef HOLDFAST_READ_ONLY_DISK_H
#define HOLDFAST_READ_ONLY_DISK_H

// A file system in memory that only the calling thread, and the threads that it starts, can see. Each function returns 0, or an
// `errno`: EPERM where mounting is not allowed.

/// Gives the calling thread a separate view of the mounted file systems, and mounts an empty one at a folder in it.
int read_only_disk_mount(const char *folder);
/// Makes the file system at the folder read-only, or writable again. It is EBUSY while one of its files is open for writing.
int read_only_disk_set(const char *folder, int is_read_only);

#endif
