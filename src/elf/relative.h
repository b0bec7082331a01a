/* relative.h - pointers in the data of position-independent files, which the file leaves to relocations.
 *
 *	r = relative_addend(elf, vaddr, &v);	// what is there at run time, without the load bias
 *
 * Only R_X86_64_RELATIVE and R_AARCH64_RELATIVE, from sections of type SHT_RELA or, in a file without section
 * headers, from DT_RELA. Packed ones (DT_RELR) have their addend in place.
 *
 * Cost:   reads all relocations: 5 ns each, at most RELATIVE_SCAN_MAX.
 * Errors: -ENOENT (no such relocation, no bytes in the file), those of elf_read.
 */
#ifndef WICK_ELF_RELATIVE_H
#define WICK_ELF_RELATIVE_H

#include "elf/elf.h"

#define RELATIVE_SCAN_MAX (4u << 20)	/* relocations looked at; large programs have some 100,000 */

/* The addend of the relocation that fills a slot. */
int must_check relative_addend(const struct elf *e, uint64_t slot, uint64_t *ret);
/* The slot that the n-th (from 0) relocation with an addend fills. */
int must_check relative_slot(const struct elf *e, uint64_t addend, unsigned int n, uint64_t *ret);

#endif
