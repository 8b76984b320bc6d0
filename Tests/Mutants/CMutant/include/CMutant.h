// The switch of the mutants that are compiled into one build.
#ifndef CMUTANT_H
#define CMUTANT_H
#include <stdbool.h>

// How many mutants one build may have.
#define MUTANT_LIMIT 65536

extern int mutant_active;
extern unsigned char mutant_reached[MUTANT_LIMIT];

// Returns whether the mutant of this number is the one that HOLDFAST_MUTANT chose, and notes that its line was reached.
static inline bool mutant(int number) {
  mutant_reached[number] = 1;
  return number == mutant_active;
}

#endif
