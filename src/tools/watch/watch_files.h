// SPDX-License-Identifier: Apache-2.0
/*
 * Files that people edit: tells when one of them has new content. Folders are watched, not files, so that
 * editors that write beside the file and rename are seen, and files that vanish and come back. What comes in
 * a burst is one change: it is reported when nothing has happened for a while.
 */
#ifndef CLEAVE_TOOLS_WATCH_WATCH_FILES_H
#define CLEAVE_TOOLS_WATCH_WATCH_FILES_H

#include "base/memory.h"

typedef struct cleave_watch_files cleave_watch_files_t;

/* `quiet_ms`: how long a burst must be over. Watches nothing yet. */
CLEAVE_STATUS cleave_watch_files_create(int32_t quiet_ms, cleave_watch_files_t **out_files,
                                        cleave_error_t *error);
void cleave_watch_files_destroy(cleave_watch_files_t *files);

/* Watches one more file; it need not be there. A file that is watched already is not an error. */
CLEAVE_STATUS cleave_watch_files_add(cleave_watch_files_t *files, const char *path, cleave_error_t *error);

/* Readable when cleave_watch_files_poll has something to do; for poll and epoll. */
int cleave_watch_files_descriptor(const cleave_watch_files_t *files);

/* Does what there is to do, and does not wait. *out_path is the file that changed, or is gone for good; NULL
 * if none did. Changes that happened until now are reported once: what comes while the caller reads the
 * files is reported by a later call. *out_saved_ns: when it was saved, by the clock of system/clock.h. */
CLEAVE_STATUS cleave_watch_files_poll(cleave_watch_files_t *files, const char **out_path,
                                      uint64_t *out_saved_ns, cleave_error_t *error);

#endif /* CLEAVE_TOOLS_WATCH_WATCH_FILES_H */
