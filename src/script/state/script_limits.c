// SPDX-License-Identifier: Apache-2.0
/*
 * The clock and the memory cap. Once a limit is reached, the call is at its end: the hook of the running
 * thread is set to every instruction, and raises until the script has unwound. The clock is read by the hook,
 * by loops in C after some steps, and by the allocator after some growth or when it refuses, because full
 * collections, which follow a refusal, are the slowest uninterrupted operation of an interpreter.
 */
#include "script/state/script.h"

#include <time.h>

#include "backend/registry/context.h"
#include "system/clock.h"

enum {
  LONGEST_INTERVAL = 400, /* instructions between two readings of the clock */
  SHORTEST_INTERVAL = 10,
  STEPS_PER_CHECK = 20000,
};
#define SLOW_INTERVAL UINT64_C(1000000) /* nanoseconds: after a longer interval the next one is shorter */
#define GROWTH_PER_CHECK ((size_t)8 << 20)
#define UNWINDING_MEMORY ((size_t)4 << 20) /* beyond the cap, for error messages */

static void on_count(lua_State *state, lua_Debug *record);

static uint64_t thread_time(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void end_call(cleave_script_t *script, cleave_script_end_t end) {
  if (script->end == CLEAVE_SCRIPT_RUNS && script->running != NULL) {
    script->end = end;
    script->end_place = cleave_script_place(script->running);
    lua_sethook(script->running, on_count, LUA_MASKCOUNT, 1);
  }
}

#define NANOSECONDS(milliseconds) ((milliseconds)*UINT64_C(1000000))

/* Processor time is read only if needed: most calls end before the clock is read once, and long budgets are
 * by the wall clock. */
static void check_time(cleave_script_t *script, uint64_t now) {
  uint64_t elapsed = now - script->wall_start;
  uint64_t budget = NANOSECONDS(script->budget);
  uint64_t limit = NANOSECONDS(CLEAVE_SCRIPT_WALL_LIMIT(script->budget));
  if (!script->work_is_counted && budget < limit) {
    script->work_is_counted = true;
    script->work_start = thread_time();
  }
  if (elapsed > script->total_left) {
    end_call(script, CLEAVE_SCRIPT_OUT_OF_TOTAL);
  } else if (atomic_load(&script->is_ended) || (elapsed > limit && budget == limit) ||
             (elapsed > budget && budget < limit && thread_time() - script->work_start > budget)) {
    end_call(script, CLEAVE_SCRIPT_OUT_OF_TIME);
  } else if (elapsed > limit) {
    end_call(script, CLEAVE_SCRIPT_OUT_OF_CLOCK);
  }
}

/* ---- memory ---- */

/* Does the block fit? After a refusal Lua makes a full collection and asks again. */
static bool may_grow(cleave_script_t *script, size_t size, size_t growth, bool is_text) {
  bool is_long_text = is_text && size > CLEAVE_SCRIPT_STRING_LIMIT + 64;
  if (is_long_text || size > CLEAVE_SCRIPT_BLOCK_LIMIT) {
    end_call(script, is_long_text ? CLEAVE_SCRIPT_OUT_OF_STRING : CLEAVE_SCRIPT_OUT_OF_BLOCK);
    return false;
  }
  size_t limit =
      CLEAVE_SCRIPT_MEMORY_LIMIT + (script->end != CLEAVE_SCRIPT_RUNS ? UNWINDING_MEMORY : (size_t)0);
  if (script->memory_used > limit || growth > limit - script->memory_used) {
    if (script->memory_refused) {
      end_call(script, CLEAVE_SCRIPT_OUT_OF_MEMORY);
    }
    script->memory_refused = true;
    check_time(script, cleave_clock_now());
    return false;
  }
  script->memory_refused = false;
  script->memory_since_check += growth;
  if (script->memory_since_check > GROWTH_PER_CHECK) {
    script->memory_since_check = 0;
    check_time(script, cleave_clock_now());
  }
  return true;
}

void *cleave_script_allocate(void *context, void *memory, size_t old_size, size_t size) {
  cleave_script_t *script = context;
  /* For a new object Lua passes its type instead of the old size. */
  size_t old = memory == NULL ? 0 : old_size;
  bool is_text = memory == NULL && old_size == LUA_TSTRING;
  if (size == 0) {
    cleave_free(memory);
    script->memory_used -= old;
    return NULL;
  }
  if (size > old && !may_grow(script, size, size - old, is_text)) {
    return NULL;
  }
  void *grown = cleave_reallocate(memory, size, 1);
  if (grown == NULL) {
    return size <= old ? memory : NULL; /* Lua relies on shrinking to succeed */
  }
  script->memory_used = script->memory_used - old + size;
  return grown;
}

/* ---- time ---- */

static int raise_end(lua_State *state) {
  const cleave_script_t *script = cleave_script_of(state);
  return script->end >= CLEAVE_SCRIPT_OUT_OF_MEMORY ? luaL_error(state, "the script needs too much memory")
         : script->end == CLEAVE_SCRIPT_OUT_OF_TOTAL
             ? luaL_error(state, "the time of all scripts is spent")
             : luaL_error(state, "the time budget of %d ms is spent", (int)script->budget);
}

/* Setting the hook takes time in proportion to the depth of the stack. */
static void watch(lua_State *state, int interval) {
  if (lua_gethook(state) != on_count || lua_gethookcount(state) != interval) {
    lua_sethook(state, on_count, LUA_MASKCOUNT, interval);
  }
}

/* If some operations of the script are slow, the clock is read more often. */
static void on_count(lua_State *state, lua_Debug *record) {
  (void)record;
  cleave_script_t *script = cleave_script_of(state);
  script->running = state;
  if (script->end == CLEAVE_SCRIPT_RUNS) {
    uint64_t now = cleave_clock_now();
    uint64_t taken = now - script->last_check;
    script->last_check = now;
    check_time(script, now);
    if (script->end == CLEAVE_SCRIPT_RUNS) {
      if (taken > SLOW_INTERVAL && script->hook_interval > SHORTEST_INTERVAL) {
        script->hook_interval /= 4;
        watch(state, script->hook_interval);
      }
      return;
    }
  }
  watch(state, 1);
  (void)raise_end(state);
}

void cleave_script_step(lua_State *state, uint32_t steps) {
  cleave_script_t *script = cleave_script_of(state);
  script->steps += steps < STEPS_PER_CHECK ? steps : STEPS_PER_CHECK;
  if (script->steps >= STEPS_PER_CHECK) {
    script->steps = 0;
    script->running = state;
    check_time(script, cleave_clock_now());
  }
  cleave_script_pass_end_on(state);
}

void cleave_script_pass_end_on(lua_State *state) {
  if (cleave_script_of(state)->end != CLEAVE_SCRIPT_RUNS) {
    cleave_script_watch(state);
    (void)raise_end(state);
  }
}

void cleave_script_watch(lua_State *state) {
  cleave_script_t *script = cleave_script_of(state);
  script->running = state;
  watch(state, script->end == CLEAVE_SCRIPT_RUNS ? script->hook_interval : 1);
}

bool cleave_script_trust(lua_State *state) {
  bool was_counted = lua_gethook(state) != NULL;
  if (cleave_script_of(state)->end == CLEAVE_SCRIPT_RUNS) {
    lua_sethook(state, NULL, 0, 0);
  }
  return was_counted;
}

void cleave_script_begin(cleave_script_t *script, uint32_t budget) {
  script->budget = budget;
  atomic_store(&script->is_ended, false);
  script->wall_start = cleave_clock_now();
  script->last_check = script->wall_start;
  script->hook_interval = LONGEST_INTERVAL;
  script->work_is_counted = false;
  script->end = CLEAVE_SCRIPT_RUNS;
  script->end_place = 0;
  script->steps = 0;
  script->close_depth = 0;
  script->memory_since_check = 0;
  script->memory_refused = false;
  script->running = script->state;
  const cleave_context_t *context = cleave_context_get(script->context);
  uint64_t limit = atomic_load_explicit(&context->script_limit, memory_order_relaxed);
  uint64_t used = limit == 0 ? 0 : atomic_load_explicit(&context->script_used, memory_order_relaxed);
  script->total_left = limit == 0 ? UINT64_MAX : used < limit ? limit - used : 0;
  lua_sethook(script->state, on_count, LUA_MASKCOUNT, LONGEST_INTERVAL);
  if (script->total_left == 0) {
    end_call(script, CLEAVE_SCRIPT_OUT_OF_TOTAL);
  }
}

void cleave_script_finish(cleave_script_t *script) {
  if (script->total_left != UINT64_MAX) {
    atomic_fetch_add_explicit(&cleave_context_get(script->context)->script_used,
                              cleave_clock_now() - script->wall_start, memory_order_relaxed);
  }
}
