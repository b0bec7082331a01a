/* elf.h - one ELF file, read as if its author were hostile.
 *
 *	struct elf *elf;
 *	uint64_t vaddr;
 *	int r = elf_open_fd(fd, &elf, &err);		// the fd stays the caller's
 *
 *	if (r)
 *		return r;
 *	r = elf_offset_to_vaddr(elf, ip - map_start + map_offset, &vaddr);
 *	...
 *	elf_free(elf);
 *
 * Reads 64-bit little-endian files for x86-64 and arm64: executables, shared objects, separate
 * debug files, kernel modules, the vDSO. Nothing is mapped (a file truncated under our feet must
 * be an error, not SIGBUS): the headers are read once at open, everything else by pread when it
 * is asked for, and each number from the file is checked before it is used.
 *
 * Program headers are what the kernel and ld.so believe, so a file with wrong ones is refused.
 * Section headers are for tools and may be missing, cut off or nonsense (sstrip, packers, vDSOs
 * cut to their pages): then the file simply has no sections, and dynsym.h still finds .dynsym.
 *
 * Ownership: a struct elf borrows its fd or image until elf_free, and owns its copy of the
 *            headers. Pointers it returns are borrowed until elf_free.
 * Threads:   a struct elf is never changed after open; several threads may read one.
 * Cost:      open is 3 to 5 preads and about 72 bytes per section and 56 per segment.
 *
 * Errors, besides -ENOMEM and whatever pread says:
 *	-ENOEXEC	not an ELF file
 *	-ENOTSUP	an ELF file that wick doesn't read: 32-bit, big-endian, another machine,
 *			core file, unknown compression (struct err says which)
 *	-EBADMSG	malformed: something points outside of the file or contradicts itself
 *	-E2BIG		well-formed perhaps, but over one of the caps below
 *	-ENOENT		no such section, segment, note, or address
 */
#ifndef WICK_ELF_ELF_H
#define WICK_ELF_ELF_H

#include "base/base.h"

#define ELF_SEGMENTS_MAX    1170	/* 64 KiB of headers: Linux runs no file with more */
#define ELF_SECTIONS_MAX    65536
#define ELF_SHSTRTAB_MAX    (4u << 20)	/* bytes of section names */
#define ELF_NOTES_MAX	    (64u << 10)	/* bytes of one note segment or section */
#define ELF_BUILD_ID_MAX    64		/* bytes; SHA-1 has 20, an MD5 or UUID 16 */
#define ELF_BUILD_ID_HEX    (2 * ELF_BUILD_ID_MAX + 1)

struct elf;

/* A program header. PT_LOADs never wrap around: offset + filesz and vaddr + memsz are valid, and
 * filesz <= memsz. Other types are as the file has them. */
struct elf_segment {
	uint32_t type;		/* PT_* */
	uint32_t flags;		/* PF_* */
	uint64_t offset, vaddr, filesz, memsz, align;
};

/* A section header as the file has it; only the name is checked. */
struct elf_section {
	const char *name;	/* "" when it has none */
	uint32_t type;		/* SHT_* */
	uint32_t link, info;
	uint64_t flags;		/* SHF_* */
	uint64_t addr, offset, size, align, entsize;
};

/* Opens a regular file (-EINVAL for any other kind). Borrows fd, which need not be positioned.
 * e may be NULL. */
int must_check elf_open_fd(int fd, struct elf **ret, struct err *e);
/* Opens a file image in memory: the vDSO, decompressed mini debug info. Borrows the bytes. */
int must_check elf_open_memory(const void *image, size_t size, struct elf **ret, struct err *e);
/* A new descriptor of its file, which the caller closes. -EBADF: it has none, -EMFILE. */
int must_check elf_dup(const struct elf *e);
/* Gives the fd or image back: the program headers stay for elf_offset_to_vaddr and its like, sections and
 * reads are gone (-EBADF). */
void elf_detach(struct elf *e);
void elf_free(struct elf *e);

uint16_t elf_type(const struct elf *e);		/* ET_REL, ET_EXEC or ET_DYN */
uint16_t elf_machine(const struct elf *e);	/* EM_X86_64 or EM_AARCH64 */
uint64_t elf_entry(const struct elf *e);
uint64_t elf_size(const struct elf *e);		/* bytes of the file when it was opened */
size_t elf_bytes(const struct elf *e);		/* memory */

/* Reads exactly n bytes at a file offset. -EBADMSG when the file doesn't have them. */
int must_check elf_read(const struct elf *e, uint64_t offset, void *buf, size_t n);

/* Program headers, in the file's order: 0 .. *ret_n - 1. */
const struct elf_segment *elf_segments(const struct elf *e, size_t *ret_n);
/* The first one of a type (PT_DYNAMIC, PT_GNU_EH_FRAME, ...), or NULL. */
const struct elf_segment *elf_segment_by_type(const struct elf *e, uint32_t type);

/* The address that the byte at a file offset has in the file's own address space, for offsets
 * sampled as code (address - mapping start + mapping offset). Going through file offsets makes
 * ET_EXEC, PIE, static PIE and linkers whose p_offset differs from p_vaddr all the same case.
 *
 * The kernel and ld.so start a mapping at the page that holds p_offset, so the page's earlier
 * bytes belong to it as well, and two segments may claim one offset. Executable segments win
 * over others (code is executed through the executable mapping), then those that really hold
 * the offset over those that only share the page. Segments without file bytes hold nothing.
 * -ENOENT when no segment does. O(segments). */
int must_check elf_offset_to_vaddr(const struct elf *e, uint64_t offset, uint64_t *ret);
/* The inverse; only for addresses with bytes in the file (not .bss): -ENOENT otherwise. */
int must_check elf_vaddr_to_offset(const struct elf *e, uint64_t vaddr, uint64_t *ret);
/* File offsets that can be executed: from the page of the first byte of any executable PT_LOAD
 * to the last byte's end. -ENOENT when there are none. */
int must_check elf_exec_range(const struct elf *e, uint64_t *ret_start, uint64_t *ret_end);
/* The executable PT_LOAD that holds an address in memory, or NULL. */
const struct elf_segment *elf_exec_segment(const struct elf *e, uint64_t vaddr);

/* Sections by index (0 is the null section) or name. NULL: no such section. Who asks for .debug_NAME gets
 * .zdebug_NAME if only that is there, which reads alike. */
size_t elf_section_count(const struct elf *e);
const struct elf_section *elf_section(const struct elf *e, size_t index);
const struct elf_section *elf_section_by_name(const struct elf *e, const char *name);
const struct elf_section *elf_section_by_type(const struct elf *e, uint32_t type);
/* Reads a section whole, decompressed when it is SHF_COMPRESSED (zlib or zstd; -ENOTSUP for others), or
 * called .zdebug_* (GNU's way before there was that flag).
 * -E2BIG above max bytes, -ENOENT for SHT_NOBITS. The caller frees *ret; it is never NULL, and
 * the byte after the last is 0. */
int must_check elf_section_read(const struct elf *e, const struct elf_section *s, size_t max,
				void **ret, size_t *ret_size);
/* The same in two steps, for a caller with memory of its own: the bytes of a section's content,
 * decompressed (a compressed section only claims them: cap before you allocate), and the content
 * itself, of exactly that size. */
bool elf_section_is_compressed(const struct elf_section *s);
int must_check elf_section_size(const struct elf *e, const struct elf_section *s, uint64_t *ret);
int must_check elf_section_read_into(const struct elf *e, const struct elf_section *s, void *buf,
				     size_t size);

/* The next note of a buffer (gABI "Note Section"). *pos starts at 0; align is the segment's or
 * section's alignment (8 for 8, anything else means 4, as the GNU tools read it). False at the
 * end, and at the first note that doesn't fit. name and desc point into the buffer; name has
 * name_size bytes, its final NUL included. */
struct elf_note {
	uint32_t type;
	const char *name;
	const unsigned char *desc;
	size_t name_size, desc_size;
};
bool elf_note_next(const void *notes, size_t size, uint64_t align, size_t *pos,
		   struct elf_note *ret);

/* The GNU build id, raw: from PT_NOTE, else from note sections. -ENOENT when there is none, or
 * none of 1 to ELF_BUILD_ID_MAX bytes. */
int must_check elf_build_id(const struct elf *e, unsigned char ret[static ELF_BUILD_ID_MAX],
			    size_t *ret_size);
/* Lower-case hex, NUL-terminated. size is at most ELF_BUILD_ID_MAX. */
void elf_build_id_hex(const unsigned char *id, size_t size, char ret[static ELF_BUILD_ID_HEX]);

DEFINE_CLEANUP(elf, struct elf *, elf_free)

#endif
