/* SPDX-License-Identifier: Apache-2.0 */
/* Closes every descriptor of its process. */
#include "hostile.h"

HOSTILE_RUN(
    "closes", for (int fd = 0; fd < 64; fd++) { (void)close(fd); })
