// SPDX-License-Identifier: Apache-2.0
// Idle time is read from /proc/stat. Quotas are those of control groups: /proc/self/cgroup says which group
// the process is in, /proc/self/mountinfo where groups are mounted and from which group on. A limit binds all
// groups below it, so every folder up to the mount is read.
#define _GNU_SOURCE  // sched_getaffinity
#include "system/processors.h"

#ifdef __linux__
#include <sched.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES = 4096, PATH_BYTES = 1024, MAX_PROCESSORS = 1 << 20 };

typedef struct group {
  char path[PATH_BYTES]; /* as /proc/self/cgroup has it */
  bool is_unified;       /* version 2 */
} group_t;

/* "a,b,c" has `word` in it. */
static bool has_word(const char *list, const char *word) {
  size_t length = strlen(word);
  for (const char *at = list; at != NULL; at = strchr(at, ',')) {
    at += *at == ',' ? 1 : 0;
    if (strncmp(at, word, length) == 0 && strchr(",\n", at[length]) != NULL) {
      return true;
    }
  }
  return false;
}

static FILE *open_below(const char *root, const char *folder, const char *name) {
  char path[3 * PATH_BYTES];
  int length = snprintf(path, sizeof path, "%s%s/%s", root, folder, name);
  return length > 0 && (size_t)length < sizeof path ? fopen(path, "re") : NULL;
}

/* The number, or -1 for "max" and for what cannot be read. */
static double read_number(const char *root, const char *folder, const char *name, double *out_second) {
  char line[128];
  double number = -1;
  FILE *file = open_below(root, folder, name);
  if (file == NULL) {
    return -1;
  }
  if (fgets(line, sizeof line, file) != NULL) {
    char *end = line;
    number = strtod(line, &end);
    number = end == line ? -1 : number;
    if (out_second != NULL) {
      *out_second = strtod(end, NULL);
    }
  }
  (void)fclose(file);
  return number;
}

/* Processors of one folder; 0: no limit. */
static double read_quota(const char *root, const char *folder, bool is_unified) {
  double period = 0;
  double quota;
  if (is_unified) {
    quota = read_number(root, folder, "cpu.max", &period);
  } else {
    quota = read_number(root, folder, "cpu.cfs_quota_us", NULL);
    period = read_number(root, folder, "cpu.cfs_period_us", NULL);
  }
  return quota > 0 && period > 0 ? quota / period : 0;
}

/* The least of the folder and those above it, up to the first `top` characters of its path. */
static double walk_up(const char *root, char *folder, size_t top, bool is_unified) {
  double least = 0;
  for (;;) {
    double quota = read_quota(root, folder, is_unified);
    least = quota > 0 && (least == 0 || quota < least) ? quota : least;
    char *slash = strrchr(folder, '/');
    if (slash == NULL || (size_t)(slash - folder) < top) {
      return least;
    }
    *slash = '\0';
  }
}

/* The group of the version, which the process has one of. */
static bool find_group(const char *root, bool is_unified, group_t *out) {
  char line[LINE_BYTES];
  bool found = false;
  FILE *file = open_below(root, "/proc/self", "cgroup");
  while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
    char *controllers = strchr(line, ':');
    char *path = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    if (path == NULL) {
      continue;
    }
    *path++ = '\0';
    path[strcspn(path, "\n")] = '\0';
    controllers++;
    found = (is_unified ? controllers[0] == '\0' : has_word(controllers, "cpu")) && strlen(path) < PATH_BYTES;
    if (found) {
      (void)snprintf(out->path, sizeof out->path, "%s", path);
      out->is_unified = is_unified;
    }
  }
  if (file != NULL) {
    (void)fclose(file);
  }
  return found;
}

/* One line of /proc/self/mountinfo: "36 35 98:0 ROOT POINT options - TYPE source super-options". */
static double quota_of_mount(const char *root, const char *line, const group_t *group) {
  char first[PATH_BYTES];
  char folder[2 * PATH_BYTES];
  char type[32];
  char options[PATH_BYTES];
  const char *rest = strstr(line, " - ");
  if (rest == NULL || sscanf(line, "%*s %*s %*s %1023s %1023s", first, folder) != 2 ||
      sscanf(rest, " - %31s %*s %1023s", type, options) != 2 ||
      strcmp(type, group->is_unified ? "cgroup2" : "cgroup") != 0 ||
      (!group->is_unified && !has_word(options, "cpu"))) {
    return 0;
  }
  // In a container a mount may show only what is below the container's own group.
  size_t skipped = strcmp(first, "/") == 0 ? 0 : strlen(first);
  const char *path = group->path;
  bool is_below = strncmp(path, first, skipped) == 0 && (path[skipped] == '\0' || path[skipped] == '/');
  path = is_below ? path + skipped : "";
  path = strcmp(path, "/") == 0 || strstr(path, "..") != NULL ? "" : path;
  size_t top = strlen(folder);
  (void)snprintf(folder + top, sizeof folder - top, "%s", path);
  return walk_up(root, folder, top, group->is_unified);
}

static double quota_of_group(const char *root, const group_t *group) {
  char line[LINE_BYTES];
  double least = 0;
  FILE *file = open_below(root, "/proc/self", "mountinfo");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    double quota = quota_of_mount(root, line, group);
    least = quota > 0 && (least == 0 || quota < least) ? quota : least;
  }
  if (file != NULL) {
    (void)fclose(file);
  }
  return least;
}

int32_t cleave_processor_quota(const char *root) {
  double least = 0;
  for (int version = 1; version <= 2; version++) {
    group_t group;
    double quota = find_group(root, version == 2, &group) ? quota_of_group(root, &group) : 0;
    least = quota > 0 && (least == 0 || quota < least) ? quota : least;
  }
  if (least <= 0 || least > MAX_PROCESSORS) {
    return 0;
  }
  int32_t whole = (int32_t)least;
  return (double)whole < least ? whole + 1 : whole;
}

#ifdef __linux__
/* "cpu7 user nice system idle iowait ...": the two times of no work, in ticks. */
static bool read_line(const char *line, const cpu_set_t *allowed, uint64_t *ticks) {
  unsigned processor;
  unsigned long long idle;
  unsigned long long waiting;
  if (line[3] == ' ' ||  // the sum of all
      sscanf(line, "cpu%u %*u %*u %*u %llu %llu", &processor, &idle, &waiting) != 3 ||
      processor >= CPU_SETSIZE || !CPU_ISSET(processor, allowed)) {
    return false;
  }
  *ticks += idle + waiting;
  return true;
}

bool cleave_processor_idle(const char *root, uint64_t *out_ns, int32_t *out_processors) {
  char line[LINE_BYTES];
  cpu_set_t allowed;
  uint64_t ticks = 0;
  int32_t count = 0;
  long per_second = sysconf(_SC_CLK_TCK);
  *out_ns = 0;
  *out_processors = 0;
  FILE *file = open_below(root, "/proc", "stat");
  if (file == NULL) {
    return false;
  }
  bool is_known = per_second > 0 && sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  while (is_known && fgets(line, sizeof line, file) != NULL && strncmp(line, "cpu", 3) == 0) {
    count += read_line(line, &allowed, &ticks) ? 1 : 0;
  }
  (void)fclose(file);
  *out_ns = is_known ? ticks * (UINT64_C(1000000000) / (uint64_t)per_second) : 0;
  *out_processors = count;
  return is_known && count > 0;
}
#else
bool cleave_processor_idle(const char *root, uint64_t *out_ns, int32_t *out_processors) {
  (void)root;
  *out_ns = 0;
  *out_processors = 0;
  return false;
}
#endif
