// SPDX-License-Identifier: Apache-2.0
// Backends that are linked in, and what cleave offers to all backends of a context.
#include "backend/region/region_json.h"
#include "backend/registry/registry_entry.h"
#include "system/file.h"
#include "system/threads.h"

#define CLEAVE_LINKED_BACKEND(name)                                                     \
  const cleave_backend_t *cleave_backend_##name(uint32_t abi_major, uint32_t abi_minor, \
                                                cleave_message_t *message);
#include "linked_backends.inc"
#undef CLEAVE_LINKED_BACKEND

typedef struct linked {
  const char *name;
  cleave_backend_entry_t enter;
} linked_t;

#define CLEAVE_LINKED_BACKEND(backend) {.name = #backend, .enter = cleave_backend_##backend},
static const linked_t LINKED[] = {
#include "linked_backends.inc"
};
#undef CLEAVE_LINKED_BACKEND

enum { LINKED_COUNT = sizeof LINKED / sizeof LINKED[0] };

/* For cleave_host_t.log: a level that does not exist counts as a detail. */
static void log_line(const cleave_host_t *host, int32_t level, const char *line) {
  const cleave_context_host_t *own = (const cleave_context_host_t *)(const void *)host;
  bool is_known = level >= CLEAVE_LOG_ERROR && level <= CLEAVE_LOG_DETAIL;
  cleave_log(own->log, is_known ? (cleave_log_level_t)level : CLEAVE_LOG_DETAIL, "%s",
             line == NULL ? "" : line);
}

static const cleave_host_t HOST = {
    .size = sizeof(cleave_host_t),
    .abi_major = CLEAVE_BACKEND_ABI_MAJOR,
    .abi_minor = CLEAVE_BACKEND_ABI_MINOR,
    .version = CLEAVE_VERSION,
    .parallel_for = cleave_parallel_for,
    .log = log_line,
    .region_to_json = cleave_host_region_to_json,
    .free_json = cleave_host_free_json,
    .region_from_json = cleave_host_region_from_json,
    .free_region = cleave_host_free_region,
    .constant_packed = cleave_file_drop_pages,
};

cleave_status_t cleave_registry_enter_linked(cleave_context_t *context, cleave_error_t *error) {
  if (context->has_linked) {
    return CLEAVE_OK;
  }
  context->host = (cleave_context_host_t){.table = HOST, .log = &context->log};
  CLEAVE_TRY(cleave_array_reserve(&context->entries, LINKED_COUNT, error));
  for (size_t k = 0; k < LINKED_COUNT; k++) {
    cleave_registry_entry_t *entry = cleave_allocate_zeroed(1, sizeof *entry);
    if (entry == NULL) {
      while (k-- > 0) {
        cleave_free(context->entries.items[k]);
      }
      context->entries.count = 0;
      return cleave_error_out_of_memory(error);
    }
    entry->name = LINKED[k].name;
    entry->functions = &cleave_registry_local;
    entry->enter = LINKED[k].enter;
    entry->context = context->self;
    cleave_array_push_reserved(&context->entries, entry);
  }
  context->has_linked = true;
  return CLEAVE_OK;
}
