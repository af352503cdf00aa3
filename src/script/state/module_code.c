// SPDX-License-Identifier: Apache-2.0
// Compiled code is kept, with its line numbers, in a list that only grows at its head, until nobody in the
// process uses cleave any more. Two threads that compile a module at the same time may both add it: the
// entries are equivalent.
#include "script/state/module_code.h"

#include <lauxlib.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "base/text.h"

typedef struct code {
  const struct code *next;
  const cleave_embedded_file_t *file;
  cleave_text_t bytes;
} code_t;

static _Atomic(const code_t *) codes;

static const code_t *find(const cleave_embedded_file_t *file) {
  const code_t *code = atomic_load_explicit(&codes, memory_order_acquire);
  while (code != NULL && code->file != file) {
    code = code->next;
  }
  return code;
}

static int append(lua_State *state, const void *data, size_t size, void *context) {
  (void)state;
  cleave_text_append(context, data, size);
  return 0;
}

static void end(void) {
  const code_t *code = atomic_exchange(&codes, NULL);
  while (code != NULL) {
    code_t *ended = (code_t *)(uintptr_t)code;
    code = code->next;
    cleave_text_deinit(&ended->bytes);
    cleave_free(ended);
  }
}

/* Keeps the function on top of the stack. If memory is short, it is compiled again the next time. */
static void keep(lua_State *state, const cleave_embedded_file_t *file) {
  code_t *code = cleave_allocate_zeroed(1, sizeof *code);
  if (code == NULL) {
    return;
  }
  code->file = file;
  if (lua_dump(state, append, &code->bytes, 0) != 0 || code->bytes.failed) {
    cleave_text_deinit(&code->bytes);
    cleave_free(code);
    return;
  }
  cleave_memory_at_end(end);
  code->next = atomic_load_explicit(&codes, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(&codes, &code->next, code, memory_order_release,
                                                memory_order_relaxed)) {
  }
}

void cleave_module_code_push(lua_State *state, const cleave_embedded_file_t *file, const char *chunk) {
  const code_t *code = find(file);
  int result = code != NULL ? luaL_loadbufferx(state, code->bytes.data, code->bytes.length, chunk, "b")
                            : luaL_loadbufferx(state, file->text, file->length, chunk, "t");
  if (result != LUA_OK) {
    lua_error(state);
  } else if (code == NULL) {
    keep(state, file);
  }
}
