// The least that a program takes.

int main(void) { return 0; }
