#include "upstream.c"
