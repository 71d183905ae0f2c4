// A program that was built with TierAlloc's own header: the declarations, with its numbers, are in
// it. For each hint it prints the tier in which a block is already: a move there gives no other
// address.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
	unsigned long long figures[18];
} snapshot;

void ta_init_from_env(void);
void ta_set_default_config(void);
const char *ta_hello(void);
void *ta_alloc(unsigned long long bytes, int hint);
void *ta_move(void *p, int tier);
int ta_advise(void *p, int hint);
long ta_charge_bytes(int tier, unsigned long long bytes, long *info);
void ta_get_stats(snapshot *out);
int ta_stats_json(char *buf, unsigned long long n);

int main(void)
{
	static char json[256 << 10];
	ta_init_from_env();
	ta_init_from_env();
	ta_set_default_config();
	printf("%s\n", ta_hello());
	for (int hint = 0; hint <= 5; hint++) {
		int tier = -1;
		for (int want = 0; want < 3; want++) {
			void *p = ta_alloc(1000, hint);
			if (ta_move(p, want) == p)
				tier = want;
		}
		printf("%d ", tier);
	}
	struct { // ta_get_stats knows no size in it, and leaves it alone
		snapshot s;
		unsigned long long behind[64];
	} room;
	for (int first = 0; first < 2; first++) {
		memset(&room, 0x5a, sizeof room);
		room.s.figures[0] = first == 0 ? 0 : 0x7ffd12345678;
		unsigned long long was = room.s.figures[0];
		ta_get_stats(&room.s);
		if (room.s.figures[0] != was || room.s.figures[1] != room.behind[63] ||
			room.behind[0] != room.behind[63])
			return 1;
	}
	if (ta_stats_json(json, sizeof json) <= 0 || json[0] != '{' || ta_advise(json, 1) != -1)
		return 2;
	printf("%ld\n", ta_charge_bytes(2, 1, NULL));
	return 0;
}
