/* A plugin for QEMU's TCG: which share of a guest's memory accesses, and of its cache misses, each
 * memory node serves. It sees loads and stores of user programs alone.
 *
 *   -plugin nodeshare.so,out=FILE,nodes=MIB+MIB+...,cache=MIB
 *
 * A store of the guest to the address MARK + 8*n ends a period: FILE gets the line
 *
 *   n accesses A0 A1 ... misses M0 M1 ... grain 12 R0 R1 ... grain 14 R0 R1 ... ...
 *
 * of what each node has served since the last one, and of the misses in each region of the
 * programs' addresses that has any, the greatest first. Regions are of 2^12 bytes, of 2^14, and so
 * on: see grains. The cache is one for each processor, direct mapped, of lines of 64 bytes, by
 * physical address.
 *
 * It was written for QEMU 7.2, whose qemu_plugin_hwaddr_phys_addr adds where a node's memory begins
 * twice. Whoever uses it checks that memory known to be on a node is counted there. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of QEMU's interface for plugins, version 1. */
typedef uint64_t plugin_id;
typedef uint32_t access_info;
struct translation;
struct instruction;
struct physical;
struct emulator;
extern void qemu_plugin_register_vcpu_tb_trans_cb(
	plugin_id, void (*)(plugin_id, struct translation *));
extern size_t qemu_plugin_tb_n_insns(const struct translation *);
extern struct instruction *qemu_plugin_tb_get_insn(const struct translation *, size_t);
extern uint64_t qemu_plugin_insn_vaddr(const struct instruction *);
enum { NO_REGISTERS = 0, LOADS_AND_STORES = 3 };
extern void qemu_plugin_register_vcpu_mem_cb(struct instruction *,
	void (*)(unsigned, access_info, uint64_t, void *), int registers, int which, void *);
extern struct physical *qemu_plugin_get_hwaddr(access_info, uint64_t);
extern bool qemu_plugin_hwaddr_is_io(const struct physical *);
extern uint64_t qemu_plugin_hwaddr_phys_addr(const struct physical *);
extern bool qemu_plugin_mem_is_store(access_info);

#define VISIBLE __attribute__((visibility("default")))
VISIBLE int qemu_plugin_version = 1;

#define MARK 0x6e6f64650000ull
enum { PROCESSORS = 8, NODES = 8, LINE_SHIFT = 6, PAGE_SHIFT = 12 };
enum { PAGES = 1 << 22 }; /* addresses that are 16 GiB apart share one */

/* Regions are of so many bytes: powers of two, in order. */
static const int grains[] = {PAGE_SHIFT, 14, 16, 21};

static uint64_t node_begin[NODES], node_end[NODES]; /* as phys_addr tells them */
static int nodes;
static uint64_t line_mask;
static FILE *out;

static struct processor {
	uint64_t accesses[NODES], misses[NODES], pages[PAGES];
	uint64_t *lines; /* what the cache holds, by its slots */
	bool used;
} processors[PROCESSORS];

static int descending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x < y) - (x > y);
}

/* print_regions prints the misses of all regions, and forgets them. */
static void print_regions(void)
{
	static uint64_t sums[PAGES], sorted[PAGES];
	memset(sums, 0, sizeof sums);
	for (int k = 0; k < PROCESSORS; k++) {
		for (int i = 0; processors[k].used && i < PAGES; i++)
			sums[i] += processors[k].pages[i];
		if (processors[k].used)
			memset(processors[k].pages, 0, sizeof processors[k].pages);
	}
	for (size_t g = 0; g < sizeof grains / sizeof grains[0]; g++) {
		int pages = 1 << (grains[g] - PAGE_SHIFT), n = 0;
		for (int i = 0; i < PAGES; i += pages) {
			sorted[n] = 0;
			for (int k = 0; k < pages; k++)
				sorted[n] += sums[i + k];
			n += sorted[n] != 0;
		}
		qsort(sorted, n, sizeof sorted[0], descending);
		fprintf(out, " grain %d", grains[g]);
		for (int i = 0; i < n; i++)
			fprintf(out, " %" PRIu64, sorted[i]);
	}
}

static void end_period(uint64_t n)
{
	fprintf(out, "%" PRIu64 " accesses", n);
	for (int i = 0; i < nodes; i++) {
		uint64_t sum = 0;
		for (int k = 0; k < PROCESSORS; k++) {
			sum += processors[k].accesses[i];
			processors[k].accesses[i] = 0;
		}
		fprintf(out, " %" PRIu64, sum);
	}
	fprintf(out, " misses");
	for (int i = 0; i < nodes; i++) {
		uint64_t sum = 0;
		for (int k = 0; k < PROCESSORS; k++) {
			sum += processors[k].misses[i];
			processors[k].misses[i] = 0;
		}
		fprintf(out, " %" PRIu64, sum);
	}
	print_regions();
	fputc('\n', out);
	fflush(out);
}

static void accessed(unsigned number, access_info info, uint64_t address, void *unused)
{
	(void)unused;
	if ((address & ~4095ull) == MARK) {
		if (qemu_plugin_mem_is_store(info))
			end_period((address - MARK) / 8);
		return;
	}
	struct physical *where = qemu_plugin_get_hwaddr(info, address);
	if (!where || qemu_plugin_hwaddr_is_io(where) || number >= PROCESSORS)
		return;
	uint64_t at = qemu_plugin_hwaddr_phys_addr(where), line = at >> LINE_SHIFT;
	for (int i = 0; i < nodes; i++) {
		if (at < node_begin[i] || at >= node_end[i])
			continue;
		struct processor *p = &processors[number];
		p->used = true;
		p->accesses[i]++;
		if (p->lines[line & line_mask] != line) {
			p->lines[line & line_mask] = line;
			p->misses[i]++;
			p->pages[address >> PAGE_SHIFT & (PAGES - 1)]++;
		}
		return;
	}
}

static void translated(plugin_id id, struct translation *code)
{
	(void)id;
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(code); i++) {
		struct instruction *one = qemu_plugin_tb_get_insn(code, i);
		if (qemu_plugin_insn_vaddr(one) >> 47 == 0) /* else the kernel's */
			qemu_plugin_register_vcpu_mem_cb(one, accessed, NO_REGISTERS, LOADS_AND_STORES, NULL);
	}
}

static const char *value(const char *argument, const char *name)
{
	size_t n = strlen(name);
	return strncmp(argument, name, n) ? NULL : argument + n;
}

VISIBLE int qemu_plugin_install(
	plugin_id id, const struct emulator *unused, int count, char **arguments)
{
	(void)unused;
	uint64_t cache = 1, begin = 0;
	for (int i = 0; i < count; i++) {
		const char *v;
		if ((v = value(arguments[i], "out="))) {
			out = fopen(v, "w");
		} else if ((v = value(arguments[i], "cache="))) {
			cache = strtoull(v, NULL, 10);
		} else if ((v = value(arguments[i], "nodes="))) {
			for (char *next; *v && nodes < NODES; v = *next ? next + 1 : next) {
				uint64_t bytes = strtoull(v, &next, 10) << 20;
				node_begin[nodes] = 2 * begin;
				node_end[nodes++] = 2 * begin + bytes;
				begin += bytes;
			}
		}
	}
	line_mask = (cache << (20 - LINE_SHIFT)) - 1;
	for (int k = 0; k < PROCESSORS; k++)
		processors[k].lines = calloc(line_mask + 1, sizeof(uint64_t));
	if (!out || !nodes || (line_mask & (line_mask + 1)))
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
