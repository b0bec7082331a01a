/* symnames.c - see symnames.h. References below SYMNAMES_SPACE are offsets into the packed names, above
 * it into the tables, as if these lay one behind the other. */
#include "symbol/symnames.h"

#include <fcntl.h>

int symnames_add(struct symnames *n, const char *name, size_t len, uint32_t *ret)
{
	int r;

	if (len >= SYMNAMES_SPACE - MIN(n->packed_size, (size_t)SYMNAMES_SPACE))
		return -E2BIG;
	r = array_grow(&n->packed, &n->packed_cap, n->packed_size + len + 1, 1);
	if (r)
		return r;
	*ret = (uint32_t)n->packed_size;
	memcpy(n->packed + n->packed_size, name, len);
	n->packed[n->packed_size + len] = '\0';
	n->packed_size += len + 1;
	return 0;
}

int symnames_add_table(struct symnames *n, const struct elf *e, uint64_t offset, uint64_t size,
		       uint32_t *ret_base)
{
	cleanup(fd_cleanup) int fd = elf_dup(e);
	struct stat st;
	int r;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st))
		return -errno;
	if (size > SYMNAMES_SPACE - n->tables_size)
		return -E2BIG;
	r = array_grow(&n->tables, &n->tables_cap, n->ntables + 1, sizeof(*n->tables));
	if (r)
		return r;
	if (!n->window)
		n->window = malloc(SYMNAMES_WINDOW + 1);
	if (!n->window)
		return -ENOMEM;
	n->tables[n->ntables++] = (struct symnames_table){
		.base = SYMNAMES_SPACE + n->tables_size,
		.size = (uint32_t)size,
		.offset = offset,
		.fd = fd,
		.mtime = st.st_mtim,
	};
	*ret_base = SYMNAMES_SPACE + n->tables_size;
	n->tables_size += (uint32_t)size;
	fd = -1;
	return 0;
}

/* Fills the window from ref on. False: not a reference, or its file isn't what it was. */
static bool fill(struct symnames *n, uint32_t ref)
{
	const struct symnames_table *t = NULL;
	struct stat st;
	size_t want;
	ssize_t got;

	for (size_t i = 0; i < n->ntables && !t; i++)
		if (ref - n->tables[i].base < n->tables[i].size)
			t = &n->tables[i];
	if (!t || fstat(t->fd, &st) || memcmp(&st.st_mtim, &t->mtime, sizeof(t->mtime)))
		return false;
	want = MIN((size_t)(t->size - (ref - t->base)), (size_t)SYMNAMES_WINDOW);
	n->window_size = 0;
	got = pread(t->fd, n->window, want, (off_t)(t->offset + (ref - t->base)));
	if (got != (ssize_t)want)
		return false;
	n->window[want] = '\0';		/* of the last name, which need not have one */
	n->window_at = ref;
	n->window_size = (uint32_t)want;
	return true;
}

/* The bytes at a reference, *ret_max of them. */
static const char *bytes_at(struct symnames *n, uint32_t ref, size_t *ret_max)
{
	uint32_t at = ref - n->window_at;	/* below window_size: inside */

	if (ref < SYMNAMES_SPACE) {
		*ret_max = n->packed_size - MIN((size_t)ref, n->packed_size);
		return n->packed + ref;
	}
	/* a name that the window cuts off is read anew */
	if (at >= n->window_size || !memchr(n->window + at, '\0', n->window_size - at)) {
		if (!fill(n, ref))
			return NULL;
		at = 0;
	}
	*ret_max = n->window_size - at + 1;
	return n->window + at;
}

bool symnames_get(struct symnames *n, uint32_t ref, const char **ret, size_t *ret_len)
{
	const char *version, *name;
	size_t max, len;

	name = bytes_at(n, ref, &max);
	if (!name)
		return false;
	len = strnlen(name, max);
	if (!len || len == max || len > SYMNAMES_MAX)
		return false;
	version = memchr(name + 1, '@', len - 1);
	if (version && ref >= SYMNAMES_SPACE)	/* packed ones were cut, or mean it: read@plt */
		len = (size_t)(version - name);
	*ret = name;
	*ret_len = len;
	return true;
}

size_t symnames_bytes(const struct symnames *n)
{
	return n->packed_cap + n->tables_cap * sizeof(*n->tables) +
	       (n->window ? SYMNAMES_WINDOW + 1 : 0);
}

void symnames_shrink(struct symnames *n)
{
	char *p = n->packed_size ? realloc(n->packed, n->packed_size) : NULL;

	if (p) {
		n->packed = p;
		n->packed_cap = n->packed_size;
	}
}

void symnames_free(struct symnames *n)
{
	for (size_t i = 0; i < n->ntables; i++)
		close(n->tables[i].fd);
	free(n->tables);
	free(n->packed);
	free(n->window);
	*n = (struct symnames)SYMNAMES_INIT;
}
