/* The counters of paths.h, and the service that reads one. */
#include "ground/paths.h"

#include <string.h>

#include "ground/status.h"

uint32_t paths_taken[PATH_COUNT];

int64_t path_count(const char *name) {
#define PATH_NAME(name) #name,
  static const char *const names[] = {PATHS(PATH_NAME)};
#undef PATH_NAME
  for (int i = 0; i < PATH_COUNT; i++)
    if (strcmp(names[i], name) == 0) return paths_taken[i];
  fail(ERR_VALUE, "no path is called %s", name);
  return -1;
}
