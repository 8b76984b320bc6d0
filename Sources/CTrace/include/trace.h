#ifndef HOLDFAST_TRACE_H
#define HOLDFAST_TRACE_H

/// Runs a program to its end under a debugger: this process traces it from its first instruction on. Its standard output
/// and error go to `output`. Returns its exit status, or -1 when it could not be run or was killed.
int holdfast_run_traced(char *_Nullable const *_Nonnull arguments, char *_Nullable const *_Nonnull environment, int output);

#endif
