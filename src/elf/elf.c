/* elf.c - see elf.h. "gABI" is the System V ABI's chapters 4 and 5. */
#include "elf/elf.h"

#include <elf.h>
#include <endian.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#ifndef ELFCOMPRESS_ZSTD	/* glibc 2.37 */
#define ELFCOMPRESS_ZSTD 2
#endif

#define DEBUG_SECTION  ".debug_"
#define GNU_COMPRESSED ".zdebug_"	/* the same, in GNU's old way of compressing */

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "headers are used as they lie in the file: little-endian hosts only"
#endif

struct elf {
	int fd;				/* -1: image */
	const unsigned char *image;
	uint64_t size, page;
	uint64_t entry;
	uint16_t type, machine;
	struct elf_segment *segments;
	size_t nsegments;
	struct elf_section *sections;	/* names point into shstrtab */
	size_t nsections;
	char *shstrtab;
	size_t shstrtab_size;
};

static bool inside(uint64_t limit, uint64_t offset, uint64_t n)
{
	return offset <= limit && n <= limit - offset;
}

int elf_read(const struct elf *e, uint64_t offset, void *buf, size_t n)
{
	size_t done = 0;
	ssize_t r;

	if (!inside(e->size, offset, n))
		return -EBADMSG;
	if (e->image) {
		if (n)
			memcpy(buf, e->image + offset, n);
		return 0;
	}
	while (done < n) {
		r = pread(e->fd, (char *)buf + done, n - done, (off_t)(offset + done));
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			return -EBADMSG;	/* truncated since it was opened */
		done += (size_t)r;
	}
	return 0;
}

static int check_ident(const unsigned char *id, struct err *e)
{
	if (memcmp(id, ELFMAG, SELFMAG))
		return err_set(e, -ENOEXEC, "not an ELF file");
	if (id[EI_CLASS] != ELFCLASS64)
		return err_set(e, -ENOTSUP, "not a 64-bit ELF file (class %u)", id[EI_CLASS]);
	if (id[EI_DATA] != ELFDATA2LSB)
		return err_set(e, -ENOTSUP, "not a little-endian ELF file (encoding %u)",
			       id[EI_DATA]);
	if (id[EI_VERSION] != EV_CURRENT)
		return err_set(e, -EBADMSG, "ELF version %u, not 1", id[EI_VERSION]);
	return 0;
}

static int check_header(const Elf64_Ehdr *h, struct err *e)
{
	int r = check_ident(h->e_ident, e);

	if (r)
		return r;
	if (h->e_machine != EM_X86_64 && h->e_machine != EM_AARCH64)
		return err_set(e, -ENOTSUP, "ELF machine %u is neither x86-64 nor arm64",
			       h->e_machine);
	if (h->e_type != ET_REL && h->e_type != ET_EXEC && h->e_type != ET_DYN)
		return err_set(e, -ENOTSUP, "ELF type %u is neither a program, a library nor an "
			       "object", h->e_type);
	return 0;
}

static int check_load(const struct elf_segment *s, struct err *e)
{
	uint64_t end;

	if (s->filesz > s->memsz)
		return err_set(e, -EBADMSG, "a PT_LOAD has more bytes in the file than in memory");
	if (__builtin_add_overflow(s->offset, s->filesz, &end) ||
	    __builtin_add_overflow(s->vaddr, s->memsz, &end))
		return err_set(e, -EBADMSG, "a PT_LOAD wraps around the address space");
	return 0;
}

static int read_segments(struct elf *elf, const Elf64_Ehdr *h, struct err *e)
{
	Elf64_Phdr *p cleanup(freep_cleanup) = NULL;
	int r;

	if (!h->e_phnum)
		return 0;
	if (h->e_phentsize != sizeof(*p))
		return err_set(e, -EBADMSG, "program headers of %u bytes, not %zu", h->e_phentsize,
			       sizeof(*p));
	if (h->e_phnum > ELF_SEGMENTS_MAX)
		return err_set(e, -E2BIG, "%u program headers are more than %u", h->e_phnum,
			       ELF_SEGMENTS_MAX);
	p = calloc(h->e_phnum, sizeof(*p));
	elf->segments = calloc(h->e_phnum, sizeof(*elf->segments));
	if (!p || !elf->segments)
		return -ENOMEM;
	r = elf_read(elf, h->e_phoff, p, h->e_phnum * sizeof(*p));
	if (r)
		return err_set(e, r, "the program headers can't be read: %s", strerror(-r));
	for (size_t i = 0; i < h->e_phnum; i++) {
		struct elf_segment *s = &elf->segments[i];

		*s = (struct elf_segment){ p[i].p_type,	 p[i].p_flags,	p[i].p_offset, p[i].p_vaddr,
					   p[i].p_filesz, p[i].p_memsz, p[i].p_align };
		r = s->type == PT_LOAD ? check_load(s, e) : 0;
		if (r)
			return r;
	}
	elf->nsegments = h->e_phnum;
	return 0;
}

/* The number of sections and the index of their names; both may overflow into section 0 (gABI
 * "ELF Header", e_shnum and e_shstrndx). */
static int section_counts(const struct elf *elf, const Elf64_Ehdr *h, uint64_t *ret_n,
			  uint64_t *ret_names)
{
	Elf64_Shdr zero;
	int r;

	*ret_n = h->e_shnum;
	*ret_names = h->e_shstrndx;
	if (h->e_shnum && h->e_shstrndx != SHN_XINDEX)
		return 0;
	r = elf_read(elf, h->e_shoff, &zero, sizeof(zero));
	if (r)
		return r;
	if (!h->e_shnum)
		*ret_n = zero.sh_size;
	if (h->e_shstrndx == SHN_XINDEX)
		*ret_names = zero.sh_link;
	return 0;
}

/* The section names with a NUL behind them, so that any offset below size is a C string. */
static int read_names(struct elf *elf, const Elf64_Shdr *sh, uint64_t *ret_size)
{
	int r;

	if (sh->sh_type != SHT_STRTAB || sh->sh_size > ELF_SHSTRTAB_MAX)
		return -EBADMSG;
	elf->shstrtab = calloc(1, sh->sh_size + 1);
	if (!elf->shstrtab)
		return -ENOMEM;
	r = elf_read(elf, sh->sh_offset, elf->shstrtab, sh->sh_size);
	if (!r)
		*ret_size = elf->shstrtab_size = sh->sh_size;
	return r;
}

static int read_sections(struct elf *elf, const Elf64_Ehdr *h)
{
	Elf64_Shdr *sh cleanup(freep_cleanup) = NULL;
	uint64_t n = 0, names = 0, names_size = 0;
	int r;

	if (!h->e_shoff || h->e_shentsize != sizeof(*sh))
		return -ENOENT;
	r = section_counts(elf, h, &n, &names);
	if (r)
		return r;
	if (!n || n > ELF_SECTIONS_MAX || !inside(elf->size, h->e_shoff, n * sizeof(*sh)))
		return -EBADMSG;
	sh = calloc(n, sizeof(*sh));
	elf->sections = calloc(n, sizeof(*elf->sections));
	if (!sh || !elf->sections)
		return -ENOMEM;
	r = elf_read(elf, h->e_shoff, sh, n * sizeof(*sh));
	if (r)
		return r;
	if (names && names < n && read_names(elf, &sh[names], &names_size) == -ENOMEM)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		elf->sections[i] = (struct elf_section){
			.name = sh[i].sh_name < names_size ? elf->shstrtab + sh[i].sh_name : "",
			.type = sh[i].sh_type,
			.link = sh[i].sh_link,
			.info = sh[i].sh_info,
			.flags = sh[i].sh_flags,
			.addr = sh[i].sh_addr,
			.offset = sh[i].sh_offset,
			.size = sh[i].sh_size,
			.align = sh[i].sh_addralign,
			.entsize = sh[i].sh_entsize,
		};
	elf->nsections = n;
	return 0;
}

/* Fills what elf (fd or image, and size) points at; the caller frees it on failure. */
static int read_headers(struct elf *elf, struct err *e)
{
	Elf64_Ehdr h;
	unsigned char ident[EI_NIDENT];
	int r;

	if (elf->size < sizeof(ident))
		return err_set(e, -ENOEXEC, "not an ELF file");
	r = elf_read(elf, 0, ident, sizeof(ident));
	if (r)
		return err_set(e, r, "the ELF header can't be read: %s", strerror(-r));
	r = check_ident(ident, e);	/* says "32-bit" even for a file shorter than Elf64_Ehdr */
	if (r)
		return r;
	r = elf_read(elf, 0, &h, sizeof(h));
	if (r)
		return err_set(e, r, "the ELF header can't be read: %s", strerror(-r));
	r = check_header(&h, e);
	if (r)
		return r;
	elf->type = h.e_type;
	elf->machine = h.e_machine;
	elf->entry = h.e_entry;
	r = read_segments(elf, &h, e);
	if (r)
		return r;
	r = read_sections(elf, &h);
	return r == -ENOMEM ? r : 0;	/* otherwise it is a file without sections */
}

static int open_common(struct elf with, struct elf **ret, struct err *e)
{
	struct elf *elf cleanup(elf_cleanup) = calloc(1, sizeof(*elf));
	int r;

	if (!elf)
		return -ENOMEM;
	*elf = with;
	elf->page = (uint64_t)sysconf(_SC_PAGESIZE);
	r = read_headers(elf, e);
	if (r)
		return r;
	*ret = take(elf);
	return 0;
}

int elf_open_fd(int fd, struct elf **ret, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st))
		return err_set(e, -errno, "the file can't be examined: %s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "not a regular file");
	return open_common((struct elf){ .fd = fd, .size = (uint64_t)st.st_size }, ret, e);
}

int elf_open_memory(const void *image, size_t size, struct elf **ret, struct err *e)
{
	return open_common((struct elf){ .fd = -1, .image = image, .size = size }, ret, e);
}

int elf_dup(const struct elf *e)
{
	int fd = fcntl(e->fd, F_DUPFD_CLOEXEC, 3);	/* -EBADF for an image's -1 */

	return fd < 0 ? -errno : fd;
}

void elf_detach(struct elf *e)
{
	free(take(e->sections));
	free(take(e->shstrtab));
	e->shstrtab_size = 0;
	e->nsections = 0;
	e->image = NULL;
	e->fd = -1;
	e->size = 0;	/* nothing can be read any more */
}

void elf_free(struct elf *e)
{
	if (!e)
		return;
	free(e->segments);
	free(e->sections);
	free(e->shstrtab);
	free(e);
}

uint16_t elf_type(const struct elf *e)
{
	return e->type;
}

uint16_t elf_machine(const struct elf *e)
{
	return e->machine;
}

uint64_t elf_entry(const struct elf *e)
{
	return e->entry;
}

uint64_t elf_size(const struct elf *e)
{
	return e->size;
}

size_t elf_bytes(const struct elf *e)
{
	return sizeof(*e) + e->nsegments * sizeof(*e->segments) +
	       e->nsections * sizeof(*e->sections) + e->shstrtab_size;
}

const struct elf_segment *elf_segments(const struct elf *e, size_t *ret_n)
{
	*ret_n = e->nsegments;
	return e->segments;
}

const struct elf_segment *elf_segment_by_type(const struct elf *e, uint32_t type)
{
	for (size_t i = 0; i < e->nsegments; i++)
		if (e->segments[i].type == type)
			return &e->segments[i];
	return NULL;
}

/* How well a segment claims a file offset: 0 not at all; higher is better. */
static int claim(const struct elf *e, const struct elf_segment *s, uint64_t offset)
{
	uint64_t before = s->offset & (e->page - 1);	/* bytes of its page before p_offset */
	int exec = s->flags & PF_X ? 2 : 0;

	if (s->type != PT_LOAD || !s->filesz)
		return 0;
	if (offset >= s->offset)
		return offset - s->offset < s->filesz ? 2 + exec : 0;
	return s->offset - offset <= MIN(before, s->vaddr) ? 1 + exec : 0;
}

int elf_offset_to_vaddr(const struct elf *e, uint64_t offset, uint64_t *ret)
{
	const struct elf_segment *best = NULL;
	int best_claim = 0;

	for (size_t i = 0; i < e->nsegments; i++) {
		int c = claim(e, &e->segments[i], offset);

		if (c > best_claim) {
			best_claim = c;
			best = &e->segments[i];
		}
	}
	if (!best)
		return -ENOENT;
	*ret = offset - best->offset + best->vaddr;	/* modulo 2^64 when offset is the smaller */
	return 0;
}

int elf_vaddr_to_offset(const struct elf *e, uint64_t vaddr, uint64_t *ret)
{
	for (size_t i = 0; i < e->nsegments; i++) {
		const struct elf_segment *s = &e->segments[i];

		if (s->type == PT_LOAD && vaddr >= s->vaddr && vaddr - s->vaddr < s->filesz) {
			*ret = vaddr - s->vaddr + s->offset;
			return 0;
		}
	}
	return -ENOENT;
}

int elf_exec_range(const struct elf *e, uint64_t *ret_start, uint64_t *ret_end)
{
	uint64_t start = UINT64_MAX, end = 0;

	for (size_t i = 0; i < e->nsegments; i++) {
		const struct elf_segment *s = &e->segments[i];

		if (s->type != PT_LOAD || !(s->flags & PF_X) || !s->filesz)
			continue;
		start = MIN(start, s->offset & ~(e->page - 1));
		end = MAX(end, s->offset + s->filesz);
	}
	if (!end)
		return -ENOENT;
	*ret_start = start;
	*ret_end = end;
	return 0;
}

const struct elf_segment *elf_exec_segment(const struct elf *e, uint64_t vaddr)
{
	for (size_t i = 0; i < e->nsegments; i++) {
		const struct elf_segment *s = &e->segments[i];

		if (s->type == PT_LOAD && s->flags & PF_X && vaddr >= s->vaddr &&
		    vaddr - s->vaddr < s->memsz)
			return s;
	}
	return NULL;
}

size_t elf_section_count(const struct elf *e)
{
	return e->nsections;
}

const struct elf_section *elf_section(const struct elf *e, size_t index)
{
	return index < e->nsections ? &e->sections[index] : NULL;
}

static const struct elf_section *find_section(const struct elf *e, const char *before,
					      const char *name)
{
	size_t n = strlen(before);

	for (size_t i = 1; i < e->nsections; i++)
		if (!strncmp(e->sections[i].name, before, n) &&
		    !strcmp(e->sections[i].name + n, name))
			return &e->sections[i];
	return NULL;
}

const struct elf_section *elf_section_by_name(const struct elf *e, const char *name)
{
	const struct elf_section *s = find_section(e, "", name);

	if (!s && !strncmp(name, DEBUG_SECTION, sizeof(DEBUG_SECTION) - 1))
		s = find_section(e, GNU_COMPRESSED, name + sizeof(DEBUG_SECTION) - 1);
	return s;
}

const struct elf_section *elf_section_by_type(const struct elf *e, uint32_t type)
{
	for (size_t i = 1; i < e->nsections; i++)
		if (e->sections[i].type == type)
			return &e->sections[i];
	return NULL;
}

/* Inflates file bytes [offset, offset + n) into exactly size bytes at out. */
static int inflate_range(const struct elf *e, uint64_t offset, uint64_t n, unsigned char *out,
			 size_t size)
{
	unsigned char in[16384];
	z_stream z = { 0 };
	size_t got = 0, chunk;
	int r = 0, zr = Z_OK;

	if (inflateInit(&z) != Z_OK)
		return -ENOMEM;
	while (!r && zr == Z_OK) {
		if (!z.avail_in) {
			chunk = (size_t)MIN(n, sizeof(in));
			r = chunk ? elf_read(e, offset, in, chunk) : -EBADMSG;
			offset += chunk;
			n -= chunk;
			z.next_in = in;
			z.avail_in = (uInt)chunk;
		}
		if (r)
			break;
		z.next_out = out + got;		/* 32-bit counters: at most 1 GiB at a time */
		z.avail_out = (uInt)MIN(size - got, 1u << 30);
		chunk = z.avail_out;
		zr = inflate(&z, Z_NO_FLUSH);
		got += chunk - z.avail_out;
	}
	inflateEnd(&z);
	if (r)
		return r;
	if (zr == Z_MEM_ERROR)
		return -ENOMEM;
	return zr == Z_STREAM_END && got == size ? 0 : -EBADMSG;
}

/* The same for zstd. Its window is what the frame asks for, 128 MiB at most (zstd's own limit). */
static int unzstd_range(const struct elf *e, uint64_t offset, uint64_t n, unsigned char *out,
			size_t size)
{
	ZSTD_DStream *z = ZSTD_createDStream();
	ZSTD_outBuffer to = { out, size, 0 };
	unsigned char in[16384];
	size_t left = 1;	/* 0: the frame has ended */
	int r = z ? 0 : -ENOMEM;

	while (!r && left && n) {
		ZSTD_inBuffer from = { in, (size_t)MIN(n, sizeof(in)), 0 };

		r = elf_read(e, offset, in, from.size);
		offset += from.size;
		n -= from.size;
		while (!r && left && from.pos < from.size) {
			size_t before = from.pos + to.pos;

			left = ZSTD_decompressStream(z, &to, &from);
			if (ZSTD_isError(left) || (left && from.pos + to.pos == before))
				r = -EBADMSG;
		}
	}
	ZSTD_freeDStream(z);
	if (r)
		return r;
	return !left && to.pos == size ? 0 : -EBADMSG;
}

/* How the bytes of a section make its content. */
struct packing {
	uint32_t type;		/* ELFCOMPRESS_*; 0: as they are */
	uint64_t from, n;	/* the stream, in the file */
	uint64_t size;		/* of the content */
};

/* Before the gABI had SHF_COMPRESSED: "ZLIB", the size in big-endian order, then the stream (GNU binutils,
 * bfd/compress.c; objcopy --compress-debug-sections=zlib-gnu). */
static int read_gnu(const struct elf *e, const struct elf_section *s, struct packing *ret)
{
	unsigned char h[12];
	uint64_t size;
	int r = s->size < sizeof(h) ? -EBADMSG : elf_read(e, s->offset, h, sizeof(h));

	if (r)
		return r;
	if (memcmp(h, "ZLIB", 4))
		return -EBADMSG;
	memcpy(&size, h + 4, sizeof(size));
	*ret = (struct packing){ ELFCOMPRESS_ZLIB, s->offset + sizeof(h), s->size - sizeof(h),
				 be64toh(size) };
	return 0;
}

/* gABI "Section Compression": an Elf64_Chdr, then the stream. */
static int read_chdr(const struct elf *e, const struct elf_section *s, struct packing *ret)
{
	Elf64_Chdr ch;
	int r = s->size < sizeof(ch) ? -EBADMSG : elf_read(e, s->offset, &ch, sizeof(ch));

	if (r)
		return r;
	if (ch.ch_type != ELFCOMPRESS_ZLIB && ch.ch_type != ELFCOMPRESS_ZSTD)
		return -ENOTSUP;
	*ret = (struct packing){ ch.ch_type, s->offset + sizeof(ch), s->size - sizeof(ch),
				 ch.ch_size };
	return 0;
}

static bool is_gnu_compressed(const struct elf_section *s)
{
	return !strncmp(s->name, GNU_COMPRESSED, sizeof(GNU_COMPRESSED) - 1);
}

bool elf_section_is_compressed(const struct elf_section *s)
{
	return s->flags & SHF_COMPRESSED || is_gnu_compressed(s);
}

static int read_packing(const struct elf *e, const struct elf_section *s, struct packing *ret)
{
	if (s->type == SHT_NOBITS)
		return -ENOENT;
	if (!inside(e->size, s->offset, s->size))
		return -EBADMSG;
	if (s->flags & SHF_COMPRESSED)
		return read_chdr(e, s, ret);
	if (is_gnu_compressed(s))
		return read_gnu(e, s, ret);
	*ret = (struct packing){ 0, s->offset, s->size, s->size };
	return 0;
}

int elf_section_size(const struct elf *e, const struct elf_section *s, uint64_t *ret)
{
	struct packing p;
	int r = read_packing(e, s, &p);

	if (!r)
		*ret = p.size;
	return r;
}

int elf_section_read_into(const struct elf *e, const struct elf_section *s, void *buf, size_t size)
{
	struct packing p;
	int r = read_packing(e, s, &p);

	if (r)
		return r;
	if (p.size != size)
		return -EBADMSG;	/* it has changed since the caller asked */
	if (!p.type)
		return elf_read(e, p.from, buf, size);
	if (p.type == ELFCOMPRESS_ZSTD)
		return unzstd_range(e, p.from, p.n, buf, size);
	return inflate_range(e, p.from, p.n, buf, size);
}

int elf_section_read(const struct elf *e, const struct elf_section *s, size_t max, void **ret,
		     size_t *ret_size)
{
	unsigned char *p cleanup(freep_cleanup) = NULL;
	uint64_t size;
	int r = elf_section_size(e, s, &size);

	if (r)
		return r;
	if (size > MIN(max, SIZE_MAX / 2))
		return -E2BIG;
	p = malloc(size + 1);
	if (!p)
		return -ENOMEM;
	r = elf_section_read_into(e, s, p, size);
	if (r)
		return r;
	p[size] = 0;
	*ret = take(p);
	*ret_size = size;
	return 0;
}

bool elf_note_next(const void *notes, size_t size, uint64_t align, size_t *pos,
		   struct elf_note *ret)
{
	const unsigned char *p = notes;
	size_t mask = align == 8 ? 7 : 3, name, desc;
	Elf64_Nhdr h;

	if (!inside(size, *pos, sizeof(h)))
		return false;
	memcpy(&h, p + *pos, sizeof(h));
	name = *pos + sizeof(h);
	if (!inside(size, name, h.n_namesz))
		return false;
	desc = (name + h.n_namesz + mask) & ~mask;
	if (!inside(size, desc, h.n_descsz))
		return false;
	ret->type = h.n_type;
	ret->name = (const char *)p + name;
	ret->name_size = h.n_namesz;
	ret->desc = p + desc;
	ret->desc_size = h.n_descsz;
	*pos = (desc + h.n_descsz + mask) & ~mask;	/* past the end after the last: "no more" */
	return true;
}

static int build_id_in(const struct elf *e, uint64_t offset, uint64_t size, uint64_t align,
		       unsigned char *ret, size_t *ret_size)
{
	unsigned char *notes cleanup(freep_cleanup) = NULL;
	struct elf_note n;
	size_t pos = 0;
	int r;

	if (!size || size > ELF_NOTES_MAX)
		return -ENOENT;
	notes = malloc(size);
	if (!notes)
		return -ENOMEM;
	r = elf_read(e, offset, notes, size);
	if (r)
		return r;
	while (elf_note_next(notes, size, align, &pos, &n)) {
		if (n.type != NT_GNU_BUILD_ID || n.name_size != 4 || memcmp(n.name, "GNU", 4) ||
		    !n.desc_size || n.desc_size > ELF_BUILD_ID_MAX)
			continue;
		memcpy(ret, n.desc, n.desc_size);
		*ret_size = n.desc_size;
		return 0;
	}
	return -ENOENT;
}

int elf_build_id(const struct elf *e, unsigned char ret[static ELF_BUILD_ID_MAX],
		 size_t *ret_size)
{
	int r;

	for (size_t i = 0; i < e->nsegments; i++) {
		const struct elf_segment *s = &e->segments[i];

		if (s->type != PT_NOTE)
			continue;
		r = build_id_in(e, s->offset, s->filesz, s->align, ret, ret_size);
		if (!r || r == -ENOMEM)
			return r;
	}
	/* Kernel modules have no segments, and debug files may keep those of the stripped file. */
	for (size_t i = 0; i < e->nsections; i++) {
		const struct elf_section *s = &e->sections[i];

		if (s->type != SHT_NOTE)
			continue;
		r = build_id_in(e, s->offset, s->size, s->align, ret, ret_size);
		if (!r || r == -ENOMEM)
			return r;
	}
	return -ENOENT;
}

void elf_build_id_hex(const unsigned char *id, size_t size, char ret[static ELF_BUILD_ID_HEX])
{
	static const char digits[] = "0123456789abcdef";

	size = MIN(size, (size_t)ELF_BUILD_ID_MAX);
	for (size_t i = 0; i < size; i++) {
		ret[2 * i] = digits[id[i] >> 4];
		ret[2 * i + 1] = digits[id[i] & 15];
	}
	ret[2 * size] = '\0';
}
