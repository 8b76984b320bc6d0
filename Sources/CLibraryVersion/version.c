#include "CLibraryVersion.h"

// Nothing in a program needs the text, so the linker is told to keep it.
__attribute__((used, retain)) const char holdfast_library_version[] = "holdfast library version " HOLDFAST_LIBRARY_VERSION ";";
