/* minidebug.h - mini debug info: a small ELF file, xz-compressed, in section .gnu_debugdata.
 *
 *	void *image;
 *	struct elf *mini;
 *	int r = minidebug_open(elf, &mini, &image);
 *
 *	if (!r)
 *		r = symtab_builder_add_elf(builder, mini);
 *	elf_free(mini);
 *	free(image);
 *
 * Fedora and its relatives strip every program and leave the functions that .dynsym lacks in this
 * section (GDB manual, "Debugging information in a special section"): both are needed.
 *
 * Hostile input: decompressed, it may have MINIDEBUG_MAX bytes and MINIDEBUG_RATIO times its size
 * in the file; the decoder may use MINIDEBUG_DECODER_MAX bytes.
 *
 * Ownership: the caller frees *ret, then *ret_image.
 * Memory: the decompressed file, and while it is made the decoder's window: what xz -6 needs is
 *	   8 MiB, of which it touches as much as there is data.
 * Cost:   10 to 20 ms a MiB of *ret_image.
 * Errors: -ENOENT (no such section), -EBADMSG (not xz, cut off, not for this machine, or not an
 *	   ELF file), -E2BIG (over a cap), -ENOMEM, those of elf_open_memory.
 */
#ifndef WICK_SYMBOL_MINIDEBUG_H
#define WICK_SYMBOL_MINIDEBUG_H

#include "elf/elf.h"

#define MINIDEBUG_MAX	      (64u << 20)	/* a browser's is about 10 MiB */
#define MINIDEBUG_RATIO	      64		/* symbol tables shrink to a quarter at best */
#define MINIDEBUG_DECODER_MAX (80u << 20)	/* xz -9 needs 65 MiB */

int must_check minidebug_open(const struct elf *e, struct elf **ret, void **ret_image);

#endif
