// Fills the table of functions_amd64.S.

#include <dlfcn.h>
#include <stddef.h>

struct entry {
	void *target;
	const char *name;
};

extern struct entry ta_nvml_table[], ta_nvml_table_end[];

int ta_nvml_missing(void);

// NVML_ERROR_FUNCTION_NOT_FOUND, for a function that the driver does not have.
int ta_nvml_missing(void) { return 13; }

// The library stays open: what it has is called until the program ends. Returns why
// it could not be opened, or NULL.
const char *ta_nvml_open(const char *library)
{
	void *handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
	if (handle == NULL) {
		const char *why = dlerror();
		return why != NULL ? why : "it cannot be opened";
	}
	for (struct entry *e = ta_nvml_table; e < ta_nvml_table_end; e++) {
		void *target = dlsym(handle, e->name);
		e->target = target != NULL ? target : (void *)ta_nvml_missing;
	}
	return NULL;
}
