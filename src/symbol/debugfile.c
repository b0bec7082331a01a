/* debugfile.c - see debugfile.h. */
#include "symbol/debugfile.h"

#include <elf.h>
#include <limits.h>
#include <zlib.h>

#include "base/clock.h"
#include "symbol/debuginfod.h"
#include "symbol/foreign.h"

#define LINK_MAX_BYTES (NAME_MAX + 1 + 3 + 4)	/* of .gnu_debuglink: name, padding, CRC */

struct search {
	const struct elf *of;
	unsigned char id[ELF_BUILD_ID_MAX];
	size_t id_size;		/* 0: no build id */
	char link[NAME_MAX + 1];/* "": no usable .gnu_debuglink */
	uint32_t crc;
	int process;		/* -1: our own root */
	uint64_t deadline;
	bool alt;		/* without symbols */
	struct debugfile found;
};

/* .gnu_debuglink: a name, its NUL, padding to a multiple of 4, a CRC. */
static int read_link(struct search *s)
{
	const struct elf_section *sec = elf_section_by_name(s->of, ".gnu_debuglink");
	char *data cleanup(freep_cleanup) = NULL;
	size_t size, len;
	void *p;
	int r;

	if (!sec)
		return 0;
	r = elf_section_read(s->of, sec, LINK_MAX_BYTES, &p, &size);
	if (r)
		return r == -ENOMEM ? r : 0;
	data = p;
	len = strnlen(data, size);
	if (!len || len > NAME_MAX || ((len + 4) & ~(size_t)3) + 4 > size || strchr(data, '/') ||
	    !strcmp(data, ".") || !strcmp(data, ".."))
		return 0;
	memcpy(s->link, data, len + 1);
	memcpy(&s->crc, data + ((len + 4) & ~(size_t)3), sizeof(s->crc));
	return 0;
}

/* A regular file, never a FIFO or a device; beneath the process's root, if there is one. */
static int open_candidate(const struct search *s, const char *path)
{
	struct foreign_file f;

	return foreign_open(s->process, path, FOREIGN_FOLLOW, &f);
}

/* 0, or -ESTALE and the errors of elf_read. */
static int check_crc(const struct search *s, const struct elf *candidate)
{
	const size_t chunk = 64 << 10;
	unsigned char *p cleanup(freep_cleanup) = NULL;
	uint64_t size = elf_size(candidate);
	uLong crc = crc32(0, NULL, 0);

	if (!s->link[0] || size > DEBUGFILE_CRC_MAX)
		return -ESTALE;
	p = malloc(chunk);
	if (!p)
		return -ENOMEM;
	for (uint64_t at = 0; at < size; at += chunk) {
		size_t n = (size_t)MIN(chunk, size - at);
		int r = elf_read(candidate, at, p, n);

		if (!r && s->deadline && clock_monotonic() > s->deadline)
			r = -ETIME;
		if (r)
			return r;
		crc = crc32(crc, p, (uInt)n);
	}
	return crc == s->crc ? 0 : -ESTALE;
}

/* Whether the candidate is the debug file of the one that was stripped. */
static int check(const struct search *s, const struct elf *candidate)
{
	unsigned char id[ELF_BUILD_ID_MAX];
	size_t n;
	int r;

	if (elf_machine(candidate) != elf_machine(s->of) ||	/* dwz makes ET_REL files */
	    (!s->alt && (elf_type(candidate) == ET_REL ||
			 !elf_section_by_type(candidate, SHT_SYMTAB))))
		return -ESTALE;
	r = s->id_size ? elf_build_id(candidate, id, &n) : -ENOENT;
	if (r == -ENOMEM)
		return r;
	if (!r)
		return n == s->id_size && !memcmp(id, s->id, n) ? 0 : -ESTALE;
	return check_crc(s, candidate);
}

/* Takes a descriptor, or is an error. 0 and found is filled in; -ENOMEM; anything else: go on. */
static int try_file(struct search *s, int candidate)
{
	struct elf *e cleanup(elf_cleanup) = NULL;
	cleanup(fd_cleanup) int fd = candidate;
	int r;

	if (fd < 0)
		return fd;
	r = elf_open_fd(fd, &e, NULL);
	if (!r)
		r = check(s, e);
	if (r)
		return r;
	s->found = (struct debugfile){ .elf = take(e), .fd = fd };
	fd = -1;
	return 0;
}

static int try_path(struct search *s, const char *path)
{
	return try_file(s, open_candidate(s, path));
}

static int by_servers(struct search *s, const struct debugfile_where *w)
{
	int r = w->servers && s->id_size ? try_file(s, debuginfod_open(w->servers, s->id, s->id_size)) :
					   -ENOENT;

	if ((r == -EAGAIN || r == -ENOENT) && w->servers && w->await) {	/* perhaps another time */
		memcpy(w->await->id, s->id, s->id_size);
		w->await->size = s->id_size;
	}
	return r;
}

static int by_build_id(struct search *s, const char *directory)
{
	char path[PATH_MAX], hex[ELF_BUILD_ID_HEX];

	if (s->id_size < 2)
		return -ENOENT;
	elf_build_id_hex(s->id, s->id_size, hex);
	if ((size_t)snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", directory, hex,
			     hex + 2) >= sizeof(path))
		return -ENAMETOOLONG;
	return try_path(s, path);
}

/* len of path are its directory. */
static int try_beside(struct search *s, const char *before, const char *path, int len,
		      const char *after)
{
	char name[PATH_MAX];

	if ((size_t)snprintf(name, sizeof(name), "%s%.*s%s/%s", before, len, path, after,
			     s->link) >= sizeof(name))
		return -ENAMETOOLONG;
	return try_path(s, name);
}

static int by_link(struct search *s, const char *path, const char *directory)
{
	int len = (int)(strrchr(path, '/') - path);
	int r = try_beside(s, "", path, len, "");

	if (r && r != -ENOMEM)
		r = try_beside(s, "", path, len, "/.debug");
	if (r && r != -ENOMEM)
		r = try_beside(s, directory, path, len, "");
	if (r && r != -ENOMEM && !strncmp(path, "/usr/", 5))
		r = try_beside(s, directory, path + 4, len - 4, "");
	return r;
}

static int search(struct search *s, const char *path, const char *directory)
{
	int r = by_build_id(s, directory);

	if (r && r != -ENOMEM && s->link[0] && path && path[0] == '/' && strlen(path) < PATH_MAX)
		r = by_link(s, path, directory);
	return r;
}

int debugfile_find(const struct elf *e, const struct debugfile_where *w, struct debugfile *ret)
{
	const char *directory = w->directory ? w->directory : DEBUGFILE_DIR;
	struct search s = { .of = e, .process = -1, .deadline = w->deadline };
	int r = elf_build_id(e, s.id, &s.id_size);

	if (r != -ENOMEM)
		r = read_link(&s);
	if (!r)
		r = search(&s, w->on_host ? w->path : NULL, directory);
	if (r && r != -ENOMEM && w->process >= 0) {
		s.process = w->process;
		r = search(&s, w->path, directory);
	}
	if (r && r != -ENOMEM)
		r = by_servers(&s, w);
	if (r)
		return r == -ENOMEM ? r : -ENOENT;
	*ret = s.found;
	return 0;
}

int debugfile_open(const struct elf *e, const char *path, const char *directory,
		   struct debugfile *ret)
{
	const struct debugfile_where w = {
		.path = path, .on_host = true, .process = -1, .directory = directory,
	};

	return debugfile_find(e, &w, ret);
}

/* Distributions keep these files in DIRECTORY/.dwz and write "../../.dwz/PACKAGE" for it, relative to
 * DIRECTORY/.build-id/xx. */
static int by_dwz(struct search *s, const char *directory, const char *link)
{
	const char *dwz = strstr(link, "/.dwz/");
	char path[PATH_MAX];

	if (!dwz || strstr(dwz, "/../") ||
	    (size_t)snprintf(path, sizeof(path), "%s%s", directory, dwz) >= sizeof(path))
		return -ENOENT;
	return try_path(s, path);
}

static int search_alt(struct search *s, const char *directory, const char *link)
{
	int r = by_build_id(s, directory);

	return r && r != -ENOMEM ? by_dwz(s, directory, link) : r;
}

/* .gnu_debugaltlink: a path, its NUL, a build id. */
int debugfile_alt(const struct elf *e, const struct debugfile_where *w, struct debugfile *ret)
{
	const char *directory = w->directory ? w->directory : DEBUGFILE_DIR;
	const struct elf_section *sec = elf_section_by_name(e, ".gnu_debugaltlink");
	struct search s = { .of = e, .process = -1, .deadline = w->deadline, .alt = true };
	char *data cleanup(freep_cleanup) = NULL;
	size_t size, len;
	void *p;
	int r = sec ? elf_section_read(e, sec, PATH_MAX + ELF_BUILD_ID_MAX, &p, &size) : -ENOENT;

	if (r)
		return r == -ENOMEM ? r : -ENOENT;
	data = p;
	len = strnlen(data, size);
	if (len == size || size - len - 1 > ELF_BUILD_ID_MAX)
		return -ENOENT;
	s.id_size = size - len - 1;
	memcpy(s.id, data + len + 1, s.id_size);
	r = s.id_size ? search_alt(&s, directory, data) : -ENOENT;
	if (r && r != -ENOMEM && data[0] == '/' && s.id_size)
		r = try_path(&s, data);
	if (r && r != -ENOMEM && w->process >= 0 && s.id_size) {
		s.process = w->process;
		r = search_alt(&s, directory, data);
	}
	if (r && r != -ENOMEM)
		r = by_servers(&s, w);
	if (r)
		return r == -ENOMEM ? r : -ENOENT;
	*ret = s.found;
	return 0;
}

void debugfile_close(struct debugfile *d)
{
	elf_free(d->elf);
	close(d->fd);
}
