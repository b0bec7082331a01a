/* vdso.h - the [vdso] image, read from our own memory: every 64-bit process has this one. */
#ifndef WICK_VDSO_H
#define WICK_VDSO_H

#include "elf/elf.h"

/* *ret_image is freed by the caller after elf_free(*ret). -ENOENT: the kernel maps none (vdso=0);
 * -ENOMEM; those of elf_open_memory. */
int must_check vdso_open(struct elf **ret, void **ret_image);

#endif
