// SPDX-License-Identifier: Apache-2.0
// configure: settings in, settings and counters out. Nothing of a call is set where one of its pairs is
// wrong.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "mirror.h"

enum { MAX_LATENCY_NS = 1000000000 };

typedef struct wanted {
  bool guards;
  bool stages;
  bool resets;
  uint64_t latency_ns;
  uint64_t memory_bytes; /* 0: as it is */
} wanted_t;

static bool parse_flag(const char *text, bool *out_flag) {
  bool is_yes = strcmp(text, "1") == 0 || strcmp(text, "true") == 0;
  *out_flag = is_yes;
  return is_yes || strcmp(text, "0") == 0 || strcmp(text, "false") == 0;
}

static cleave_status_t refuse_key(cleave_message_t *message, const char *key) {
  return mirror_fail(message, CLEAVE_ERROR_UNSUPPORTED, CLEAVE_REASON_NONE,
                     "setting '%.60s' is unknown; there are: guard, host_memory, latency_ns, memory_bytes, "
                     "reset; and counters to ask for",
                     key);
}

static cleave_status_t read_one(mirror_t *mirror, const char *key, const char *value, wanted_t *wanted,
                                cleave_message_t *message) {
  const char *expected = NULL;
  if (strcmp(key, "guard") == 0) {
    expected = parse_flag(value, &wanted->guards) ? NULL : "0 or 1";
  } else if (strcmp(key, "host_memory") == 0) {
    wanted->stages = strcmp(value, "stage") == 0;
    expected = wanted->stages || strcmp(value, "refuse") == 0 ? NULL : "'stage' or 'refuse'";
  } else if (strcmp(key, "latency_ns") == 0) {
    bool fits = mirror_parse_number(value, &wanted->latency_ns) && wanted->latency_ns <= MAX_LATENCY_NS;
    expected = fits ? NULL : "nanoseconds, at most 1000000000";
  } else if (strcmp(key, "memory_bytes") == 0) {
    bool fits = mirror_parse_number(value, &wanted->memory_bytes) && wanted->memory_bytes >= 4096 &&
                wanted->memory_bytes <= SIZE_MAX / 4;
    expected = fits ? NULL : "bytes, at least 4096";
  } else if (strcmp(key, "reset") == 0) {
    wanted->resets = strcmp(value, "counters") == 0;
    expected = wanted->resets ? NULL : "'counters'";
  } else {
    return refuse_key(message, key);
  }
  return expected == NULL ? CLEAVE_OK
                          : mirror_misuse(mirror, message, "setting '%s': expected %s, found '%.60s'", key,
                                          expected, value);
}

static cleave_status_t apply(mirror_t *mirror, const wanted_t *wanted, cleave_message_t *message) {
  for (uint32_t d = 0; d < MIRROR_DEVICES && wanted->memory_bytes > 0; d++) {
    if (mirror_pool_resize(&mirror->pools[d], (size_t)wanted->memory_bytes) != CLEAVE_OK) {
      return mirror_misuse(mirror, message, "setting 'memory_bytes': device %u is in use already",
                           (unsigned)d);
    }
  }
  for (uint32_t d = 0; d < MIRROR_DEVICES; d++) {
    if (!mirror_pool_guard(&mirror->pools[d], wanted->guards)) {
      return mirror_fail(message, CLEAVE_ERROR_BACKEND, CLEAVE_REASON_DEVICE,
                         "setting 'guard': the system does not protect the memory of device %u", (unsigned)d);
    }
  }
  atomic_store(&mirror->settings.guards, wanted->guards);
  atomic_store(&mirror->settings.stages, wanted->stages);
  atomic_store(&mirror->settings.latency_ns, wanted->latency_ns);
  if (wanted->resets) {
#define MIRROR_COUNTER(name) atomic_store(&mirror->counters.name, 0);
    MIRROR_COUNTERS(MIRROR_COUNTER)
#undef MIRROR_COUNTER
  }
  return CLEAVE_OK;
}

static void answer(mirror_t *mirror, uint32_t *next, const char *key, uint64_t number) {
  char *text = mirror->answer_texts[*next];
  (void)snprintf(text, sizeof mirror->answer_texts[0], "%" PRIu64, number);
  mirror->answers[(*next)++] = (cleave_key_value_t){.key = key, .value = text};
}

static uint32_t fill_answers(mirror_t *mirror) {
  uint32_t next = 0;
  uint64_t live = 0;
  uint64_t live_bytes = 0;
  uint64_t own_bytes = 0;
  for (uint32_t d = 0; d < MIRROR_DEVICES; d++) {
    mirror_pool_count(&mirror->pools[d], &live, &live_bytes, &own_bytes);
  }
  answer(mirror, &next, "guard", atomic_load(&mirror->settings.guards));
  mirror->answers[next++] = (cleave_key_value_t){
      .key = "host_memory", .value = atomic_load(&mirror->settings.stages) ? "stage" : "refuse"};
  answer(mirror, &next, "latency_ns", atomic_load(&mirror->settings.latency_ns));
  answer(mirror, &next, "memory_bytes", mirror->pools[0].capacity);
  answer(mirror, &next, "live_allocations", live);
  answer(mirror, &next, "live_bytes", live_bytes);
  answer(mirror, &next, "own_bytes", own_bytes);
#define MIRROR_COUNTER(name) answer(mirror, &next, #name, atomic_load(&mirror->counters.name));
  MIRROR_COUNTERS(MIRROR_COUNTER)
#undef MIRROR_COUNTER
  return next;
}

/* Leaves the answers to the keys of the settings. */
static cleave_status_t pick_answers(mirror_t *mirror, const cleave_key_value_t *settings, uint32_t count,
                                    uint32_t all, uint32_t *out_count, cleave_message_t *message) {
  cleave_key_value_t picked[MIRROR_MAX_ANSWERS];
  *out_count = 0;
  for (uint32_t k = 0; k < count && *out_count < MIRROR_MAX_ANSWERS; k++) {
    uint32_t at = 0;
    while (at < all && strcmp(mirror->answers[at].key, settings[k].key) != 0) {
      at++;
    }
    if (at < all) {
      picked[(*out_count)++] = mirror->answers[at];
    } else if (settings[k].value == NULL) {
      return refuse_key(message, settings[k].key);
    }
  }
  memcpy(mirror->answers, picked, *out_count * sizeof picked[0]);
  return CLEAVE_OK;
}

cleave_status_t mirror_configure(void *state, const cleave_key_value_t *settings, uint32_t setting_count,
                                 const cleave_key_value_t **out_answers, uint32_t *out_answer_count,
                                 cleave_message_t *message) {
  mirror_t *mirror = state;
  wanted_t wanted = {.guards = atomic_load(&mirror->settings.guards),
                     .stages = atomic_load(&mirror->settings.stages),
                     .latency_ns = atomic_load(&mirror->settings.latency_ns)};
  bool sets = false;
  cleave_status_t status = CLEAVE_OK;
  *out_answers = NULL;
  *out_answer_count = 0;
  for (uint32_t k = 0; k < setting_count && status == CLEAVE_OK; k++) {
    if (settings[k].key == NULL) {
      status = mirror_misuse(mirror, message, "setting %u has no key", (unsigned)k);
    } else if (settings[k].value != NULL) {
      status = read_one(mirror, settings[k].key, settings[k].value, &wanted, message);
      sets = true;
    }
  }
  if (status == CLEAVE_OK && sets) {
    status = apply(mirror, &wanted, message);
  }
  if (status != CLEAVE_OK) {
    return status;
  }
  uint32_t count = fill_answers(mirror);
  if (setting_count > 0) {
    status = pick_answers(mirror, settings, setting_count, count, &count, message);
  }
  if (status == CLEAVE_OK) {
    *out_answer_count = count;
    *out_answers = mirror->answers;
  }
  return status;
}
