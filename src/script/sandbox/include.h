// SPDX-License-Identifier: Apache-2.0
/*
 * `include "parts/conv.lua"` and `require "parts.conv"`: other files of a rule file, below its folder. A file
 * runs once per load, in the same closed environment; both words return what the file returned. A shipped
 * rule file includes shipped files; a rule source from memory cannot include files.
 */
#ifndef CLEAVE_SCRIPT_SANDBOX_INCLUDE_H
#define CLEAVE_SCRIPT_SANDBOX_INCLUDE_H

#include "script/state/script.h"

typedef enum cleave_include_source {
  CLEAVE_INCLUDE_NOTHING,  /* a source from memory */
  CLEAVE_INCLUDE_FILES,    /* of the rule file's folder */
  CLEAVE_INCLUDE_EMBEDDED, /* of the folder rules/ that is built in */
} cleave_include_source_t;

/* The state of a load whose file may include others; `script->include` while it runs. */
typedef struct cleave_include {
  cleave_include_source_t source;
  int environment;                                 /* registry reference to the globals of the script */
  uint32_t chain[CLEAVE_SCRIPT_INCLUDE_DEPTH + 1]; /* files that are being included, beginning with the
                                                      script itself */
  uint32_t depth;                                  /* of the chain, without the script itself */
  /* Called for each file before it is opened; may be NULL. */
  void (*note)(void *context, const char *path);
  void *note_context;
} cleave_include_t;

#endif /* CLEAVE_SCRIPT_SANDBOX_INCLUDE_H */
