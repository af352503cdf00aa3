// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "engine/engine_types.h"

enum { MAX_DESCRIBED = 1000 };

/* The task that has the variable now, or the oldest of several that read it; NULL: none. */
static const engine_task_t *holder(const cleave_variable_t *variable, const engine_task_t *before) {
  for (const engine_task_t *task = variable->engine->first_task; task != before; task = task->next) {
    for (uint32_t k = 0; k < task->access_count; k++) {
      if (task->accesses[k].variable == variable) {
        return task;
      }
    }
  }
  return NULL;
}

static const char *shown(const char *name) {
  return name != NULL ? name : "(no name)";
}

/* "waits to write 'x' (conv runs)": the variables that it shares with the oldest task before it. */
static void describe_waiting(cleave_text_t *text, const engine_task_t *task) {
  cleave_text_add(text, "waits");
  const char *separator = " to ";
  for (uint32_t k = 0; k < task->access_count; k++) {
    const engine_access_t *access = &task->accesses[k];
    const engine_task_t *other = holder(access->variable, task);
    if (other != NULL) {
      cleave_text_show(text, "%s%s '%s' (after '%s')", separator, access->is_write ? "write" : "read",
                       shown(access->variable->name), shown(other->name));
      separator = ", ";
    }
  }
  if (task->missing == 0) {
    cleave_text_add(text, " for a stream");
  }
}

cleave_status_t cleave_engine_describe(cleave_engine_t *engine, char **out_text, cleave_error_t *error) {
  cleave_text_t text = {0};
  *out_text = NULL;
  pthread_mutex_lock(&engine->lock);
  uint64_t shown_count = 0;
  for (const engine_task_t *task = engine->first_task; task != NULL; task = task->next) {
    if (++shown_count > MAX_DESCRIBED) {
      cleave_text_format(&text, "and %llu more\n", (unsigned long long)(engine->pending - MAX_DESCRIBED));
      break;
    }
    cleave_text_show(&text, "'%s' on %s: ", shown(task->name),
                     task->device != NULL ? task->device->name : "no device");
    if (task->state == TASK_WAITS) {
      describe_waiting(&text, task);
    } else {
      cleave_text_add(&text, task->state == TASK_RUNS ? "runs" : "is ready");
    }
    cleave_text_add(&text, "\n");
  }
  pthread_mutex_unlock(&engine->lock);
  cleave_status_t status = cleave_text_check(&text, error);
  if (status == CLEAVE_OK) {
    *out_text = cleave_copy_text(cleave_text_get(&text), text.length);
    status = *out_text == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
  }
  cleave_text_deinit(&text);
  return status;
}
