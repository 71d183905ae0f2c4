// A program whose main is in a library, behind all that is preloaded.
int ways(int argc, char **argv);

int main(int argc, char **argv) { return ways(argc, argv); }
