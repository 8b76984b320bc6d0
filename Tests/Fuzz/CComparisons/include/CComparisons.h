#include <stdbool.h>

// Whether libFuzzer is told of what the program compares.
extern bool comparisons_are_told;
