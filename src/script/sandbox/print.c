// SPDX-License-Identifier: Apache-2.0
/*
 * `print` of scripts: to the log of the context, each line with the place of the call, the rule at work and
 * the node that it is about. Nothing is written to standard output.
 */
#include <stdio.h>
#include <string.h>

#include "backend/registry/context.h"
#include "base/text.h"
#include "script/sandbox/host.h"

/* Logs one line with its origin. Control characters are replaced, because they could disguise the line. */
static void log_line(const cleave_script_t *script, const char *origin, const char *line, size_t length) {
  char shown[768];
  size_t count = length < sizeof shown - 1 ? length : sizeof shown - 1;
  for (size_t k = 0; k < count; k++) {
    unsigned char c = (unsigned char)line[k];
    shown[k] = (char)(c < 0x20 || c == 0x7f ? ' ' : c);
  }
  shown[count] = '\0';
  cleave_log(cleave_context_log(script->context), CLEAVE_LOG_INFORMATION, "%s: %s", origin, shown);
}

/* (text): a line of the log for each line of the text. */
static int host_print(lua_State *state) {
  const cleave_script_t *script = cleave_script_of(state);
  int place = cleave_script_place(state);
  size_t length = 0;
  const char *text = luaL_checklstring(state, 1, &length);
  const char *end = text + length;
  char origin[320];
  int used = snprintf(origin, sizeof origin, "%.192s:%d", cleave_script_path_at(script, place),
                      cleave_place_line(place));
  if (script->rule_kind != NULL) {
    used += snprintf(origin + used, sizeof origin - (size_t)used, ": %.15s '%.63s'", script->rule_kind,
                     script->rule_name);
  }
  if (script->graph != NULL && cleave_node_exists(script->node)) {
    char label[96];
    (void)snprintf(origin + used, sizeof origin - (size_t)used, ", at %.63s '%s'",
                   cleave_node_op(script->graph, script->node)->name,
                   cleave_node_label(script->graph, script->node, label, sizeof label));
  }
  do {
    const char *stop = memchr(text, '\n', (size_t)(end - text));
    stop = stop == NULL ? end : stop;
    log_line(script, origin, text, (size_t)(stop - text));
    cleave_script_step(state, 100);
    text = stop < end ? stop + 1 : end;
  } while (text < end);
  return 0;
}

void cleave_print_register(lua_State *state) {
  lua_pushcfunction(state, host_print);
  lua_setfield(state, -2, "print");
}
