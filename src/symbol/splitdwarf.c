/* splitdwarf.c - see splitdwarf.h. */
#include "symbol/splitdwarf.h"

#include <dwarf.h>
#include <limits.h>

#include "symbol/dwarfdie.h"
#include "symbol/dwpindex.h"
#include "symbol/foreign.h"

#define INDEX_MAX (64u << 20)	/* bytes of .debug_cu_index */

struct splitdwarf {
	struct dwarfimage *image;
	Elf *elf;
	Dwarf *dwarf;
	Dwarf_Off unit;
};

struct search {
	const struct splitdwarf_options *o;
	uint64_t id, addr_base, ranges_base;
};

/* ---- identity ---- */

static const char *split_name(Dwarf_Die *unit)
{
	const char *name = die_string(unit, DW_AT_dwo_name);

	return name ? name : die_string(unit, DW_AT_GNU_dwo_name);
}

bool splitdwarf_is_skeleton(Dwarf_Die *unit)
{
	return split_name(unit) != NULL;
}

/* In the unit's header, or before DWARF 5 an attribute. */
static uint64_t id_of(Dwarf_Die *unit)
{
	uint64_t id = die_number(unit, DW_AT_GNU_dwo_id), in_header = 0;
	Dwarf_Half version = 0;

	if (dwarf_cu_info(unit->cu, &version, NULL, NULL, NULL, &in_header, NULL, NULL) ||
	    version < 5)
		return id;
	return in_header;
}

/* ---- files ---- */

/* The unit of the wanted id in an image. */
static int find_unit(struct splitdwarf *s, uint64_t id)
{
	Dwarf_Off at = 0, next;
	size_t header;
	Dwarf_Die die;

	while (!dwarf_nextcu(s->dwarf, at, &next, &header, NULL, NULL, NULL)) {
		if (dwarf_offdie(s->dwarf, at + header, &die) && id_of(&die) == id) {
			s->unit = at + header;
			return 0;
		}
		if (next <= at)
			break;
		at = next;
	}
	return -ESTALE;
}

static int read_image(const struct search *q, const struct elf *e,
		      const struct dwarfimage_slice *slices, struct splitdwarf **ret)
{
	struct splitdwarf *s cleanup(splitdwarf_cleanup) = calloc(1, sizeof(*s));
	struct dwarfimage_split split = {
		.elf = e, .slices = slices, .from = q->o->image, .addr_base = q->addr_base,
		.ranges_base = q->ranges_base, .max = q->o->max,
	};
	size_t size;
	char *bytes;
	int r;

	if (!s)
		return -ENOMEM;
	r = dwarfimage_new_split(&split, &s->image);
	if (r)
		return r;
	bytes = dwarfimage_bytes(s->image, &size);
	s->elf = elf_memory(bytes, size);
	if (s->elf)
		s->dwarf = dwarf_begin_elf(s->elf, DWARF_C_READ, NULL);
	if (!s->dwarf)
		return -EBADMSG;
	r = find_unit(s, q->id);
	if (!r)
		*ret = take(s);
	return r;
}

static int open_elf(const struct search *q, const char *path, struct elf **ret, int *ret_fd)
{
	struct foreign_file f;
	int fd = foreign_open(q->o->process, path, FOREIGN_FOLLOW, &f), r;

	if (fd < 0)
		return fd;
	r = elf_open_fd(fd, ret, NULL);
	if (r)
		close(fd);
	else
		*ret_fd = fd;
	return r;
}

static int try_dwo(const struct search *q, const char *path, struct splitdwarf **ret)
{
	struct elf *e cleanup(elf_cleanup) = NULL;
	cleanup(fd_cleanup) int fd = -1;
	int r = open_elf(q, path, &e, &fd);

	return r ? r : read_image(q, e, NULL, ret);
}

static int try_dwp(const struct search *q, const char *path, struct splitdwarf **ret)
{
	struct dwarfimage_slice slices[DWARF_SECTIONS] = { 0 };
	const struct elf_section *s;
	struct elf *e cleanup(elf_cleanup) = NULL;
	void *index cleanup(freep_cleanup) = NULL;
	cleanup(fd_cleanup) int fd = -1;
	size_t size;
	int r = open_elf(q, path, &e, &fd);

	if (r)
		return r;
	s = elf_section_by_name(e, ".debug_cu_index");
	if (!s)
		return -ENOENT;
	r = elf_section_read(e, s, INDEX_MAX, &index, &size);
	if (!r)
		r = dwpindex_find(index, size, q->id, slices);
	return r ? r : read_image(q, e, slices, ret);
}

/* ---- where they may be ---- */

/* The result of another try: of two failures, a file of another id says more than none. */
static int worse(int before, int now)
{
	return now && before != -ENOENT ? before : now;
}

static bool join(char *buf, size_t size, const char *dir, size_t len, const char *name)
{
	return (size_t)snprintf(buf, size, "%.*s/%s", (int)MIN(len, (size_t)PATH_MAX), dir, name) <
	       size;
}

static int try_all(const struct search *q, const char *comp_dir, const char *name,
		   struct splitdwarf **ret)
{
	const char *path = q->o->path, *base = strrchr(name, '/');
	size_t dir = (size_t)(strrchr(path, '/') - path);
	char at[PATH_MAX];
	int r = -ENOENT;

	if ((size_t)snprintf(at, sizeof(at), "%s.dwp", path) < sizeof(at))
		r = try_dwp(q, at, ret);
	if (r && r != -ENOMEM && name[0] == '/')
		r = worse(r, try_dwo(q, name, ret));
	else if (r && r != -ENOMEM && comp_dir && comp_dir[0] == '/' &&
		 join(at, sizeof(at), comp_dir, strlen(comp_dir), name))
		r = worse(r, try_dwo(q, at, ret));
	if (r && r != -ENOMEM && name[0] != '/' && join(at, sizeof(at), path, dir, name))
		r = worse(r, try_dwo(q, at, ret));
	if (r && r != -ENOMEM && base && join(at, sizeof(at), path, dir, base + 1))
		r = worse(r, try_dwo(q, at, ret));
	return r;
}

int splitdwarf_open(const struct splitdwarf_options *o, Dwarf_Die *skeleton,
		    struct splitdwarf **ret)
{
	const char *name = split_name(skeleton);
	struct search q = { .o = o, .id = id_of(skeleton) };

	if (!name || !o->path || o->path[0] != '/')
		return -ENOENT;
	q.addr_base = die_number(skeleton, DW_AT_addr_base);
	if (!q.addr_base)
		q.addr_base = die_number(skeleton, DW_AT_GNU_addr_base);
	q.ranges_base = die_number(skeleton, DW_AT_GNU_ranges_base);
	return try_all(&q, die_string(skeleton, DW_AT_comp_dir), name, ret);
}

void splitdwarf_free(struct splitdwarf *s)
{
	if (!s)
		return;
	dwarf_end(s->dwarf);
	elf_end(s->elf);
	dwarfimage_free(s->image);
	free(s);
}

Dwarf *splitdwarf_dwarf(const struct splitdwarf *s)
{
	return s->dwarf;
}

Dwarf_Off splitdwarf_unit(const struct splitdwarf *s)
{
	return s->unit;
}

uint64_t splitdwarf_memory(const struct splitdwarf *s)
{
	return dwarfimage_memory(s->image);
}
