"""One module a vector file. Every invalid vector is checked to be refused by the rule that its flag names, and by no other."""
