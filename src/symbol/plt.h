/* plt.h - names for PLT stubs, the few instructions through which a file calls another file's
 * functions: "read@plt".
 *
 *	r = plt_add(builder, elf);
 *
 * A stub jumps through a slot of the GOT, and a relocation says whose address goes there (x86-64
 * psABI section 5.2, "Procedure Linkage Table"; its addenda for IBT; AArch64 ELF ABI, "PLT"). So
 * the stubs themselves are decoded, in whatever layout the linker chose, instead of counting
 * relocations:
 *	x86-64	.plt, .plt.sec, .plt.got, .iplt: jmp *slot(%rip), or push $n for the n-th relocation
 *		of .rela.plt, each behind endbr64 and with a bnd prefix or not
 *	arm64	.plt, .iplt: adrp x16, ldr x17, ..., br x17, behind bti or not
 * The first entry of .plt, which calls the dynamic linker, has no name. Slots for IFUNCs
 * (R_*_IRELATIVE) are named if one of the file's own IFUNC symbols has that resolver.
 *
 * Hostile input: each limit below is for the whole file; what is over it has no name.
 * Memory: while it runs 24 bytes a relocation of these types and the stubs.
 * Cost:   two preads a stub, about 1 us.
 * Errors: -ENOENT (no stubs, or no section headers to find them), -ENOMEM, those of elf_read and
 *	   elf_section_read. Names added before stay added.
 */
#ifndef WICK_SYMBOL_PLT_H
#define WICK_SYMBOL_PLT_H

#include "elf/elf.h"
#include "symbol/symtab.h"

#define PLT_BYTES_MAX  (4u << 20)	/* of stubs: 262,144 of them */
#define PLT_RELOCS_MAX (1u << 20)	/* kept */
#define PLT_SCAN_MAX   (16u << 20)	/* relocations and symbols looked at */
#define PLT_IFUNCS_MAX 4096

int must_check plt_add(struct symtab_builder *b, const struct elf *e);

#endif
