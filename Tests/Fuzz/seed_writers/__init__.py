"""First inputs for the fuzzer, one module a subject."""
