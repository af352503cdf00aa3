// SPDX-License-Identifier: Apache-2.0
/* Resident memory of the process, in MiB. 0 if the system does not tell. */
#ifndef CLEAVE_SYSTEM_RESIDENT_H
#define CLEAVE_SYSTEM_RESIDENT_H

/* The most that was resident at once. */
double cleave_resident_peak(void);

/* The memory of the program and its libraries themselves at the moment: code, tables and relocations. */
double cleave_resident_code(void);

#endif /* CLEAVE_SYSTEM_RESIDENT_H */
