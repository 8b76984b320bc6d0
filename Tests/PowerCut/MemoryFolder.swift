import Glibc

/// Where files are kept in memory, or the usual place for temporary ones: thousands of disks are laid out there.
package let memoryFolder = unsafe access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"
