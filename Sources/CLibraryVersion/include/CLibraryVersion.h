#ifndef HOLDFAST_LIBRARY_VERSION_H
#define HOLDFAST_LIBRARY_VERSION_H

// The version of Holdfast's libraries, for Swift and for C: https://semver.org. The first number is that of incompatible changes,
// and part of the name of libholdfast.so. Each release raises it.
#define HOLDFAST_LIBRARY_VERSION "1.1.0"

// The text by which a service finds the version in a program: "holdfast library version 1.1.0;".
extern const char holdfast_library_version[];

#endif
