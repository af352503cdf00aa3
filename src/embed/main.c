// SPDX-License-Identifier: Apache-2.0
/* cleave_embed OUT.c ROOT FILE...: writes every FILE, whose path begins with ROOT, as an entry of
 * cleave_embedded_files (script/state/embedded.h). */
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "script/state/embedded.h"

enum { BYTES_PER_LINE = 40 };

typedef struct output {
  FILE *file;
  size_t length; /* of the array being written */
} output_t;

static int write_bytes(lua_State *state, const void *data, size_t size, void *context) {
  (void)state;
  output_t *output = context;
  const unsigned char *bytes = data;
  for (size_t k = 0; k < size; k++, output->length++) {
    (void)fprintf(output->file, output->length % BYTES_PER_LINE == 0 ? "\n%u," : "%u,", bytes[k]);
  }
  return 0;
}

static void begin_array(output_t *output, const char *kind, int index) {
  output->length = 0;
  (void)fprintf(output->file, "static const unsigned char %s_%d[] = {", kind, index);
}

/* Pushes the content of a file. */
static const char *push_text(lua_State *state, const char *path, size_t *out_length) {
  luaL_Buffer buffer;
  FILE *file = fopen(path, "rb");
  if (file == NULL) {
    (void)luaL_error(state, "%s: cannot be read", path);
    return NULL;
  }
  luaL_buffinit(state, &buffer);
  size_t count = 0;
  do {
    count = fread(luaL_prepbuffer(&buffer), 1, LUAL_BUFFERSIZE, file);
    luaL_addsize(&buffer, count);
  } while (count > 0);
  (void)fclose(file);
  luaL_pushresult(&buffer);
  return lua_tolstring(state, -1, out_length);
}

static void write_file(lua_State *state, output_t *output, const char *path, const char *name, int index) {
  size_t length = 0;
  const char *text = push_text(state, path, &length);
  begin_array(output, "text", index);
  (void)write_bytes(state, text, length, output);
  (void)fprintf(output->file, "0};\n");
  if (strncmp(name, "rules/", strlen("rules/")) == 0) {
    lua_pushfstring(state, CLEAVE_SCRIPT_HEAD "%s", text);
    text = lua_tolstring(state, -1, &length);
  }
  if (luaL_loadbufferx(state, text, length, lua_pushfstring(state, "@%s", name), "t") != LUA_OK) {
    (void)lua_error(state);
  }
  begin_array(output, "code", index);
  (void)lua_dump(state, write_bytes, output, 0);
  (void)fprintf(output->file, "0};\n");
  lua_settop(state, 0);
}

/* (arguments of main...) -> nothing; raises what went wrong. */
static int write_files(lua_State *state) {
  int count = (int)lua_tointeger(state, 1);
  char **arguments = lua_touserdata(state, 2);
  size_t root = strlen(arguments[2]) + 1;
  output_t output = {.file = fopen(arguments[1], "w")};
  if (output.file == NULL) {
    return luaL_error(state, "%s: cannot be written", arguments[1]);
  }
  (void)fprintf(output.file, "/* Written by cleave_embed. */\n#include \"script/state/embedded.h\"\n");
  for (int k = 3; k < count; k++) {
    write_file(state, &output, arguments[k], arguments[k] + root, k);
  }
  (void)fprintf(output.file, "const char cleave_embedded_lua[] = \"%s\";\n", lua_ident);
  (void)fprintf(output.file, "const cleave_embedded_file_t cleave_embedded_files[] = {\n");
  for (int k = 3; k < count; k++) {
    (void)fprintf(output.file,
                  "  {\"%s\", (const char *)text_%d, sizeof text_%d - 1, (const char *)code_%d, sizeof "
                  "code_%d - 1},\n",
                  arguments[k] + root, k, k, k, k);
  }
  (void)fprintf(output.file, "  {NULL, NULL, 0, NULL, 0}};\n");
  bool failed = ferror(output.file) != 0;
  return fclose(output.file) != 0 || failed ? luaL_error(state, "%s: cannot be written", arguments[1]) : 0;
}

int main(int argc, char **argv) {
  lua_State *state = argc < 3 ? NULL : luaL_newstate();
  if (state == NULL) {
    (void)fprintf(stderr, "usage: cleave_embed OUT.c ROOT FILE...\n");
    return EXIT_FAILURE;
  }
  lua_pushcfunction(state, write_files);
  lua_pushinteger(state, argc);
  lua_pushlightuserdata(state, argv);
  int code = lua_pcall(state, 2, 0, 0);
  if (code != LUA_OK) {
    (void)fprintf(stderr, "cleave_embed: %s\n", lua_tostring(state, -1));
    (void)remove(argv[1]);
  }
  lua_close(state);
  return code == LUA_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
