// The exports of exports.go for C. Arguments and results are integers of pointer size. Each call
// goes through the gate.
#ifndef TA_EXPORTS_H
#define TA_EXPORTS_H
#include <stdint.h>

void ta_go_boot(uintptr_t arg);
uintptr_t ta_go_acquire(uintptr_t token);
void ta_go_leave(uintptr_t heap);
void ta_go_abandon(uintptr_t heap);
uintptr_t ta_go_malloc(uintptr_t heap, uintptr_t n, uintptr_t allowed, uintptr_t how);
uintptr_t ta_go_alloc(uintptr_t heap, uintptr_t n, uintptr_t hint);
uintptr_t ta_go_renew(uintptr_t heap, uintptr_t n, uintptr_t allowed, uintptr_t old);
uintptr_t ta_go_aligned(
	uintptr_t heap, uintptr_t align, uintptr_t n, uintptr_t allowed, uintptr_t how);
uintptr_t ta_go_site_set(uintptr_t depth, uintptr_t path, uintptr_t offset);
uintptr_t ta_go_site_functions(uintptr_t depth);
uintptr_t ta_go_site_function(uintptr_t depth, uintptr_t set);
uintptr_t ta_go_site_deep(void);
uintptr_t ta_go_site_begin(uintptr_t thread);
void ta_go_site_end(uintptr_t thread);
uintptr_t ta_go_charge(uintptr_t heap, uintptr_t tier, uintptr_t n);
void ta_go_copied(uintptr_t heap, uintptr_t p, uintptr_t n);
uintptr_t ta_go_move(uintptr_t heap, uintptr_t p, uintptr_t tier);
uintptr_t ta_go_tier_of(uintptr_t p);
uintptr_t ta_go_tier_of_range(uintptr_t p, uintptr_t offset, uintptr_t n, uintptr_t bytes);
uintptr_t ta_go_set_hint(uintptr_t heap, uintptr_t hint);
uintptr_t ta_go_set_default_hint(uintptr_t heap, uintptr_t hint);
void ta_go_renamed(uintptr_t heap);
uintptr_t ta_go_free(uintptr_t heap, uintptr_t p, uintptr_t how, uintptr_t size, uintptr_t fn);
uintptr_t ta_go_free_poor(
	uintptr_t token, uintptr_t p, uintptr_t how, uintptr_t size, uintptr_t fn);
uintptr_t ta_go_usable(uintptr_t p);
void ta_go_connect(uintptr_t heap, uintptr_t page);
void ta_go_page_empty(uintptr_t heap, uintptr_t page);
uintptr_t ta_go_resize(uintptr_t heap, uintptr_t p, uintptr_t n);
uintptr_t ta_go_trim(uintptr_t heap);
void ta_go_misuse(uintptr_t fn, uintptr_t p, uintptr_t why, uintptr_t size);
uintptr_t ta_go_sample_begin(uintptr_t heap);
uintptr_t ta_go_sample_step(uintptr_t stack, uintptr_t how);
void ta_go_sample_end(uintptr_t heap, uintptr_t how);
void ta_go_sample_took(uintptr_t heap, uintptr_t start, uintptr_t end);
uintptr_t ta_go_cuda_step(uintptr_t request);
uintptr_t ta_go_cuda_sample_begin(uintptr_t request);
void ta_go_cuda_sample_end(uintptr_t request, uintptr_t how);
uintptr_t ta_go_cuda_history(uintptr_t token, uintptr_t device, uintptr_t buf, uintptr_t n);
uintptr_t ta_go_cuda_take(uintptr_t token, uintptr_t device, uintptr_t stream, uintptr_t bytes);
uintptr_t ta_go_cuda_give(uintptr_t token, uintptr_t device, uintptr_t stream, uintptr_t address);
uintptr_t ta_go_manager(uintptr_t call);
void ta_go_cuda_log(uintptr_t event, uintptr_t a, uintptr_t b);
uintptr_t ta_go_cuda_figures(uintptr_t token, uintptr_t device, uintptr_t to);
uintptr_t ta_go_cuda_configure(uintptr_t token, uintptr_t device, uintptr_t key, uintptr_t value);
uintptr_t ta_go_fork_prepare(uintptr_t token, uintptr_t alone);
void ta_go_fork_parent(uintptr_t taken);
uintptr_t ta_go_fork_child(uintptr_t token, uintptr_t taken, uintptr_t heap, uintptr_t alone);
void ta_go_fork_unprepared(uintptr_t token, uintptr_t heap);
uintptr_t ta_go_service(uintptr_t token);
uintptr_t ta_go_order_due(void);
uintptr_t ta_go_order_next(uintptr_t request, uintptr_t errno_);
void ta_go_order_fail(uintptr_t errno_);
void ta_go_service_heat(uintptr_t token, uintptr_t regions, uintptr_t n, uintptr_t ns);
uintptr_t ta_go_service_survey(uintptr_t token, uintptr_t survey);
uintptr_t ta_go_service_move(
	uintptr_t token, uintptr_t block, uintptr_t start, uintptr_t n, uintptr_t tier);
uintptr_t ta_go_service_distinguish(
	uintptr_t token, uintptr_t block, uintptr_t start, uintptr_t n, uintptr_t plain);
void ta_go_control_place(uintptr_t addr, uintptr_t n);
void ta_go_control_stop(uintptr_t why);
uintptr_t ta_go_control_due(uintptr_t awhile);
void ta_go_control_again(void);
void ta_go_report(uintptr_t token);
uintptr_t ta_go_stats(uintptr_t token, uintptr_t out, uintptr_t size);
uintptr_t ta_go_sizes(uintptr_t token, uintptr_t out, uintptr_t n);
uintptr_t ta_go_stats_json(uintptr_t token, uintptr_t buf, uintptr_t n, uintptr_t exact);
uintptr_t ta_go_stats_write(uintptr_t token, uintptr_t path, uintptr_t n);
#ifdef TA_LOCKRANK
void ta_go_lock_taken(uintptr_t token, uintptr_t rank, uintptr_t word);
#endif

#endif
