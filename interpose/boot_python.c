#include "boot_python.h"
#include "boot_walk.h"
#include "elf_symbol.h"
#include "libc_symbol.h"

enum { UNKNOWN, NONE, FREE_THREADED = 1 << 8 }; // or the minor version of Python 3

static void *(*thread_state)(void);
static struct ta_python python; // of all threads

// The minor version of the program's Python, and whether it is a build without the global lock:
// objects have another layout there.
static uintptr_t version_of(const char *v)
{
	static const char without[] = "free-threading";
	if (v == NULL || v[0] != '3' || v[1] != '.')
		return NONE;
	uintptr_t minor = 0;
	for (const char *c = v + 2; *c >= '0' && *c <= '9' && minor < 100; c++)
		minor = 10 * minor + (uintptr_t)(*c - '0');
	for (; *v != 0; v++) {
		size_t n = 0;
		while (without[n] != 0 && v[n] == without[n])
			n++;
		if (without[n] == 0)
			return minor | FREE_THREADED;
	}
	return minor > NONE ? minor : NONE;
}

// The sorted table of an object's .eh_frame_hdr has the start of each of its functions and of each
// part of a function that the compiler has moved away, relative to the table's header.
struct parts {
	uintptr_t header;
	uint32_t count;
	const int32_t *start; // every second one: the others are addresses of descriptions
};

static struct parts parts_of(uintptr_t header)
{
	enum { VERSION = 1, UDATA4 = 0x03, DATAREL_SDATA4 = 0x3b }; // what every linker writes
	const uint8_t *h = (const uint8_t *)header;
	struct parts p = {header, 0, NULL};
	if (header != 0 && h[0] == VERSION && h[2] == UDATA4 && h[3] == DATAREL_SDATA4) {
		p.count = *(const uint32_t *)(header + 8);
		p.start = (const int32_t *)(header + 12);
	}
	return p;
}

static uintptr_t part_start(const struct parts *p, uint32_t i)
{
	return p->header + (uintptr_t)(intptr_t)p->start[2 * i];
}

// Returns the number of the part that an address is in, or the table's count.
static uint32_t part_at(const struct parts *p, uintptr_t at)
{
	uint32_t low = 0, high = p->count; // the last part that starts at the address or below
	while (high - low > 1 && low < high) {
		uint32_t mid = low + (high - low) / 2;
		if (part_start(p, mid) <= at)
			low = mid;
		else
			high = mid;
	}
	return p->count != 0 && part_start(p, low) <= at ? low : p->count;
}

// Finds the part of the interpreter that the compiler has moved away because it rarely runs: the
// one that most of the conditional jumps out of the function (0F 80 to 0F 8F, with 32 bits) lead
// to. Some bytes look like such jumps and are none. The majority is found in one pass (Boyer and
// Moore, "MJRTY", 1991).
static void find_cold(const struct ta_object *o)
{
	enum { JUMP = 6, CERTAIN = 4 };
	const struct parts p = parts_of(o->header);
	uint32_t most = p.count, lead = 0;
	for (uintptr_t at = python.eval; p.count != 0 && at + JUMP <= python.eval_end; at++) {
		const uint8_t *code = (const uint8_t *)at;
		int32_t distance;
		if (code[0] != 0x0f || code[1] >> 4 != 8)
			continue;
		__builtin_memcpy(&distance, code + 2, sizeof distance);
		uintptr_t to = at + JUMP + (uintptr_t)(intptr_t)distance;
		if (to - python.eval < python.eval_end - python.eval || to < o->start || to >= o->end)
			continue;
		uint32_t part = part_at(&p, to);
		if (lead == 0)
			most = part;
		lead += part == most ? 1 : -1u;
	}
	if (lead >= CERTAIN && most + 1 < p.count) {
		python.cold = part_start(&p, most);
		python.cold_end = part_start(&p, most + 1);
	}
}

static void find_eval(void)
{
	static const char name[] = "_PyEval_EvalFrameDefault";
	struct ta_object o;
	uintptr_t at = (uintptr_t)ta_symbol_first(name);
	if (at == 0 || !ta_object_of(at, &o))
		return;
	struct ta_symbols s = ta_symbols_of(o.map->l_addr, o.map->l_ld);
	uint32_t i = ta_symbol_find(&s, name, 0);
	python.eval = at;
	python.eval_end = at + s.all[i].st_size;
	find_cold(&o);
}

static uintptr_t find(void)
{
	const char *(*version)(void);
	*(void **)&version = ta_symbol_first("Py_GetVersion");
	*(void **)&thread_state = ta_symbol_first("PyGILState_GetThisThreadState");
	uintptr_t minor = version != NULL && thread_state != NULL ? version_of(version()) : NONE;
	if (minor != NONE)
		find_eval();
	return minor;
}

// PyGILState_GetThisThreadState reads thread-local storage.
struct ta_python ta_python_here(void)
{
	struct ta_python here = {0};
	uintptr_t minor = __atomic_load_n(&python.minor, __ATOMIC_ACQUIRE);
	if (minor == UNKNOWN) {
		minor = find();
		__atomic_store_n(&python.minor, minor, __ATOMIC_RELEASE);
	}
	if (minor == NONE)
		return here;
	here = python;
	here.thread = (uintptr_t)thread_state();
	return here;
}
