// SPDX-License-Identifier: Apache-2.0
/* Pages of a mapped file, brought in ahead of their first use by a thread of its own. */
#ifndef CLEAVE_SYSTEM_PAGES_H
#define CLEAVE_SYSTEM_PAGES_H

#include <stddef.h>

typedef struct cleave_page_reader cleave_page_reader_t;

/* Begins with the pages of [data, data + bytes), which stay mapped until the reader is ended. NULL if no
 * thread can be started: pages then come as they are used, as they also do where the system cannot bring
 * them in ahead. */
cleave_page_reader_t *cleave_pages_read(const void *data, size_t bytes);

/* Ends it, whether it is done or not; NULL is a no-op. */
void cleave_pages_read_end(cleave_page_reader_t *reader);

#endif /* CLEAVE_SYSTEM_PAGES_H */
