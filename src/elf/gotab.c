/* gotab.c - see gotab.h. "Words" are 8 bytes: pointers of the machines that wick reads. */
#include "elf/gotab.h"

#include "elf/relative.h"

#include <elf.h>

#define MAGIC_12  0xfffffffbu
#define MAGIC_116 0xfffffffau
#define MAGIC_118 0xfffffff0u
#define MAGIC_120 0xfffffff1u

#define HEADER_WORDS 8	/* after the first 8 bytes */
#define WINDOW	     (16u << 10)
#define CHUNK	     512
#define MODULE_SLOTS 64		/* pointers to the table that may be module data */
#define CANDIDATES   64		/* beginnings of a table that are tried */
#define PAGES	     64		/* of lists that are remembered: functions share the common ones */
#define PAGE	     1024

_Static_assert(GOTAB_NAME_MAX < WINDOW, "a name fits into a window");

/* Where in the module data of the runtime (struct moduledata): the same since 1.16. */
enum { MODULE_HEADER = 0, MODULE_MINPC = 20, MODULE_TEXT = 22 };
/* go:func.*, what offsets of tables count from: counters of coverage came before it with 1.20. */
enum { MODULE_GOFUNC_118 = 38, MODULE_GOFUNC_120 = 40 };

/* internal/abi/symtab.go: numbers of a list and of a table of each function. 1.14 and 1.15 had tables of
 * registers before it; before that both numbers were others. */
enum { PCDATA_INLTREE = 2, FUNCDATA_INLTREE = 3, FUNCDATA_INLTREE_114 = 4 };

/* Section .go.buildinfo (debug/buildinfo): magic, size of a pointer, flags, then until 1.17 the address of
 * the string with the version. */
#define BUILDINFO_MAGIC "\xff Go buildinf:"
enum { BUILDINFO_POINTER = 14, BUILDINFO_VERSION = 16, BUILDINFO_SEARCH = 16 << 20 };

/* A part of the table that is read mostly forwards. */
struct window {
	uint64_t at;
	size_t n;
	uint8_t bytes[WINDOW];
};

struct page {
	uint64_t at;	/* + 1; 0: empty */
	size_t n;
	uint8_t bytes[PAGE];
};

struct gotab {
	const struct elf *e;
	uint64_t offset, size, vaddr;	/* of the section */
	uint64_t budget;		/* bytes that may still be read */
	uint64_t functab, funcdata, names, lists; /* from the section's start */
	uint64_t text;			/* what addresses count from */
	uint64_t nfunc, next;		/* of them given out */
	uint64_t steps;			/* through lists that may still be made */
	unsigned int passes;		/* through relocations or data that may still be made */
	uint64_t units, files;		/* where in the table */
	uint64_t gofunc;		/* an address; 0: not looked for yet, or nowhere */
	bool gofunc_tried;
	int inltree;			/* FUNCDATA_*; -1: unknown, 0: not looked for yet */
	uint32_t magic;
	size_t field;			/* bytes of an address in functab and of an entry's address */
	const struct elf_segment *code;
	struct window in_functab, in_funcdata, in_names;
	struct page pages[PAGES];
};

/* At least n bytes at a position of the table, and in *ret_n how many more there are at hand. */
static int look(struct gotab *t, struct window *w, uint64_t at, size_t n, const uint8_t **ret,
		size_t *ret_n)
{
	int r;

	if (at > t->size || n > t->size - at)
		return -EBADMSG;
	if (at < w->at || at - w->at > w->n || n > w->n - (at - w->at)) {
		size_t take_n = (size_t)MIN(WINDOW, t->size - at);

		if (take_n > t->budget)
			return -EBADMSG;
		t->budget -= take_n;
		w->n = 0;
		r = elf_read(t->e, t->offset + at, w->bytes, take_n);
		if (r)
			return r;
		w->at = at;
		w->n = take_n;
	}
	*ret = w->bytes + (at - w->at);
	*ret_n = w->n - (size_t)(at - w->at);
	return 0;
}

static int look_uint(struct gotab *t, struct window *w, uint64_t at, size_t n, uint64_t *ret)
{
	const uint8_t *p;
	uint64_t v = 0;
	size_t left;
	int r = look(t, w, at, n, &p, &left);

	if (r)
		return r;
	memcpy(&v, p, n);
	*ret = v;
	return 0;
}

/* ---- words of the program's data ---- */

/* One more pass through all relocations or all data. Hostile files could ask for any number of them. */
static bool may_pass(struct gotab *t)
{
	return t->passes && t->passes--;
}

static int addend_of(struct gotab *t, uint64_t slot, uint64_t *ret)
{
	return may_pass(t) ? relative_addend(t->e, slot, ret) : -ENOENT;
}

/* A pointer in the program's data as it is at run time, without the load bias; 0 if nothing fills it. */
static int read_pointer(struct gotab *t, uint64_t vaddr, uint64_t *ret)
{
	uint64_t offset, v;
	int r = elf_vaddr_to_offset(t->e, vaddr, &offset);

	if (!r)
		r = elf_read(t->e, offset, &v, sizeof(v));
	if (!r && !v) {
		r = addend_of(t, vaddr, &v);
		r = r == -ENOENT ? 0 : r;
	}
	if (!r)
		*ret = v;
	return r;
}

/* Whether the module data at an address is that of this table. first: functab's first entry. */
static int check_module(struct gotab *t, uint64_t at, uint64_t first, uint64_t *ret_text)
{
	uint64_t header, minpc, text;
	int r = read_pointer(t, at + MODULE_HEADER * sizeof(uint64_t), &header);

	if (!r)
		r = read_pointer(t, at + MODULE_MINPC * sizeof(uint64_t), &minpc);
	if (!r)
		r = read_pointer(t, at + MODULE_TEXT * sizeof(uint64_t), &text);
	if (r)
		return r;
	if (header != t->vaddr || !text || text + first != minpc)
		return -EBADMSG;
	*ret_text = text;
	return 0;
}

/* The section of the module data, if it has word `last`. */
static const struct elf_section *module_section(const struct gotab *t, unsigned int last)
{
	const struct elf_section *s = elf_section_by_name(t->e, ".go.module");

	return s && s->size >= (last + 1) * sizeof(uint64_t) &&
	       s->addr <= UINT64_MAX - s->size ? s : NULL;
}

/* The module data by a relocation that puts the table's address into it. */
static int module_by_relocation(struct gotab *t, uint64_t first, uint64_t *ret)
{
	uint64_t text;

	for (unsigned int i = 0; i < MODULE_SLOTS; i++) {
		int r = may_pass(t) ? relative_slot(t->e, t->vaddr, i, ret) : -ENOENT;

		if (r || !check_module(t, *ret, first, &text))
			return r;
	}
	return -ENOENT;
}

/* The module data of a program that has no section for it: the words of its data are looked through
 * for the table's address, then the relocations. */
static int scan_for_module(struct gotab *t, uint64_t first, uint64_t *ret)
{
	uint64_t left = GOTAB_SCAN_MAX * sizeof(uint64_t), words[CHUNK], text;
	unsigned int checked = 0;
	const struct elf_segment *s;
	size_t n;

	if (!may_pass(t))
		return -ENOENT;
	s = elf_segments(t->e, &n);
	for (size_t i = 0; i < n; i++) {
		if (s[i].type != PT_LOAD || !(s[i].flags & PF_W))
			continue;
		for (uint64_t at = 0; at < MIN(s[i].filesz, left); at += sizeof(words)) {
			size_t size = (size_t)MIN(sizeof(words), s[i].filesz - at);
			int r = elf_read(t->e, s[i].offset + at, words, size);

			if (r)
				return r;
			for (size_t w = 0; w < size / sizeof(*words); w++) {
				*ret = s[i].vaddr + at + w * sizeof(*words);
				if (words[w] != t->vaddr)
					continue;
				if (!check_module(t, *ret, first, &text))
					return 0;
				if (++checked == MODULE_SLOTS)
					return -ENOENT;
			}
		}
		left -= MIN(s[i].filesz, left);
	}
	return module_by_relocation(t, first, ret);
}

static int text_of_module(struct gotab *t, uint64_t first)
{
	const struct elf_section *s = module_section(t, MODULE_TEXT);
	uint64_t at = s ? s->addr : 0;
	int r = s ? 0 : scan_for_module(t, first, &at);

	return r ? r : check_module(t, at, first, &t->text);
}

/* ---- the table ---- */

/* What functab's first address counts from. */
static int find_text(struct gotab *t, uint64_t header_text)
{
	uint64_t first;
	int r = look_uint(t, &t->in_functab, t->functab, t->field, &first);

	if (!r && t->field == 4) {
		t->text = header_text;
		if (!t->text)	/* third word of the header, if a relocation fills it */
			r = addend_of(t, t->vaddr + 8 + 2 * sizeof(uint64_t), &t->text);
		if (r == -ENOENT)
			r = text_of_module(t, first);
	}
	if (r)
		return r;
	t->code = elf_exec_segment(t->e, t->text + first);
	return t->code ? 0 : -EBADMSG;
}

static int read_header(struct gotab *t)
{
	uint64_t start, word[HEADER_WORDS] = { 0 };
	size_t words;
	int r = look_uint(t, &t->in_functab, 0, 8, &start);

	if (r)
		return r;
	/* magic, two zeros, bytes of the shortest instruction, bytes of a pointer */
	if (start >> 32 & 0xffff || start >> 56 != 8)
		return -EBADMSG;
	words = (uint32_t)start == MAGIC_12 ? 1 : (uint32_t)start == MAGIC_116 ? 7 : 8;
	for (size_t i = 0; i < words && !r; i++)
		r = look_uint(t, &t->in_functab, 8 + i * sizeof(uint64_t), 8, &word[i]);
	if (r)
		return r;
	t->nfunc = word[0];
	t->field = 8;
	t->magic = (uint32_t)start;
	switch (t->magic) {
	case MAGIC_12:	/* everything counts from the section's start */
		t->functab = 8 + sizeof(uint64_t);
		break;
	case MAGIC_116:
		t->names = word[2];
		t->units = word[3];
		t->files = word[4];
		t->lists = word[5];
		t->functab = t->funcdata = word[6];
		break;
	case MAGIC_118:
	case MAGIC_120:
		t->names = word[3];
		t->units = word[4];
		t->files = word[5];
		t->lists = word[6];
		t->functab = t->funcdata = word[7];
		t->field = 4;
		break;
	default:
		return -EBADMSG;
	}
	if (t->nfunc > GOTAB_FUNCS_MAX)
		return -E2BIG;
	if (!t->nfunc || t->names > t->size || t->lists > t->size || t->units > t->size ||
	    t->files > t->size || t->functab > t->size ||
	    (2 * t->nfunc + 1) * t->field > t->size - t->functab)
		return -EBADMSG;
	if (t->magic == MAGIC_12) {	/* behind functab: where the list of files is */
		r = look_uint(t, &t->in_functab, t->functab + (2 * t->nfunc + 1) * t->field, 4, &t->units);
		if (r)
			return r;
	}
	return find_text(t, word[2]);
}

/* Prepares for a table at a place of the file. */
static int open_at(struct gotab *t, uint64_t offset, uint64_t vaddr, uint64_t size)
{
	t->offset = offset;
	t->vaddr = vaddr;
	t->size = size;
	t->budget = GOTAB_READS * size + 3 * WINDOW;
	t->in_functab.n = t->in_funcdata.n = t->in_names.n = 0;
	t->names = t->units = t->files = t->lists = t->funcdata = 0;
	return read_header(t);
}

static bool is_start(const uint8_t *p)
{
	uint32_t magic;

	memcpy(&magic, p, sizeof(magic));
	return (magic == MAGIC_12 || magic == MAGIC_116 || magic == MAGIC_118 || magic == MAGIC_120) && !p[4] &&
	       !p[5] && (p[6] == 1 || p[6] == 4) && p[7] == 8;
}

/* The table of a program that has no section for it. The linker aligns it to 32 bytes, since 1.26 to 16. */
static int search(struct gotab *t)
{
	uint64_t left = GOTAB_SEARCH_MAX;
	unsigned int tried = 0;
	uint8_t bytes[WINDOW];
	size_t n;
	const struct elf_segment *s = elf_segments(t->e, &n);

	for (size_t i = 0; i < n; i++) {
		uint64_t end = MIN(s[i].filesz, left), skip = -s[i].vaddr % 8;

		if (s[i].type != PT_LOAD || s[i].offset > elf_size(t->e) ||
		    s[i].filesz > elf_size(t->e) - s[i].offset)
			continue;
		left -= end;
		for (uint64_t at = skip; at + 8 <= end; at += sizeof(bytes)) {
			size_t size = (size_t)MIN(sizeof(bytes), end - at);
			int r = elf_read(t->e, s[i].offset + at, bytes, size);

			if (r)
				return r;
			for (size_t j = 0; j + 8 <= size; j += 8) {
				if (!is_start(bytes + j))
					continue;
				if (!open_at(t, s[i].offset + at + j, s[i].vaddr + at + j,
					     s[i].filesz - at - j))
					return 0;
				if (++tried == CANDIDATES)
					return -ENOENT;
			}
		}
	}
	return -ENOENT;
}

/* Whether it may be in another section or in none: GNU ld makes the table of position-independent programs a part of
 * .data.rel.ro. */
static bool may_be_anywhere(const struct elf *e)
{
	return !elf_section_count(e) || elf_section_by_name(e, ".go.buildinfo");
}

int gotab_open(const struct elf *e, struct gotab **ret)
{
	const struct elf_section *s = elf_section_by_name(e, ".gopclntab");
	cleanup(gotab_cleanup) struct gotab *t = NULL;
	int r;

	if (!s)
		s = elf_section_by_name(e, ".data.rel.ro.gopclntab");
	if (s ? s->type != SHT_PROGBITS || s->flags & SHF_COMPRESSED : !may_be_anywhere(e))
		return -ENOENT;
	if (s && (s->offset > elf_size(e) || s->size > elf_size(e) - s->offset))
		return -EBADMSG;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->e = e;
	t->steps = GOTAB_STEPS_MAX;
	t->passes = GOTAB_PASSES_MAX;
	r = s ? open_at(t, s->offset, s->addr, s->size) : search(t);
	if (!r)
		*ret = take(t);
	return r;
}

void gotab_free(struct gotab *t)
{
	free(t);
}

/* functab: for each function its address and where its record is in funcdata, then the end of the
 * last. A record starts with the address again and the name's offset. */
static int read_function(struct gotab *t, uint64_t i, struct gotab_func *ret)
{
	uint64_t at = t->functab + 2 * i * t->field, start, end, record, name;
	int r = look_uint(t, &t->in_functab, at, t->field, &start);

	if (!r)
		r = look_uint(t, &t->in_functab, at + t->field, t->field, &record);
	if (!r)
		r = look_uint(t, &t->in_functab, at + 2 * t->field, t->field, &end);
	if (!r && record > t->size - t->funcdata)
		r = -EBADMSG;
	if (!r)
		r = look_uint(t, &t->in_funcdata, t->funcdata + record + t->field, 4, &name);
	if (!r)
		*ret = (struct gotab_func){ .start = t->text + start, .end = t->text + end,
					    .record = t->funcdata + record, .name = t->names + name };
	return r;
}

int gotab_next(struct gotab *t, struct gotab_func *ret)
{
	struct gotab_func f;
	int r;

	while (t->next < t->nfunc) {
		r = read_function(t, t->next++, &f);
		if (r)
			return r;
		if (f.start < t->code->vaddr || f.end - t->code->vaddr > t->code->memsz ||
		    f.end <= f.start)
			continue;
		*ret = f;
		return 0;
	}
	return -ENOENT;
}

int gotab_name(struct gotab *t, const struct gotab_func *f, const char **ret, size_t *ret_n)
{
	const uint8_t *p, *nul;
	size_t n;
	int r = look(t, &t->in_names, f->name, 1, &p, &n);

	if (r)
		return r;
	nul = memchr(p, 0, n);
	if (!nul && n <= GOTAB_NAME_MAX) {	/* it may go on behind the window */
		r = look(t, &t->in_names, f->name,
			 (size_t)MIN(GOTAB_NAME_MAX + UINT64_C(1), t->size - f->name), &p, &n);
		if (r)
			return r;
		nul = memchr(p, 0, n);
	}
	if (!nul)
		return -ENOENT;
	*ret = (const char *)p;
	*ret_n = (size_t)(nul - p);
	return 0;
}

/* ---- pages: reading here and there ---- */

static int page_of(struct gotab *t, uint64_t at, const struct page **ret)
{
	struct page *p = &t->pages[at / PAGE % PAGES];
	uint64_t start = at - at % PAGE;

	if (at >= t->size)
		return -EBADMSG;
	if (p->at != start + 1) {
		size_t n = (size_t)MIN((uint64_t)PAGE, t->size - start);
		int r;

		if (n > t->budget)
			return -EBADMSG;
		t->budget -= n;
		p->at = 0;
		r = elf_read(t->e, t->offset + start, p->bytes, n);
		if (r)
			return r;
		p->at = start + 1;
		p->n = n;
	}
	*ret = p;
	return 0;
}

static int peek(struct gotab *t, uint64_t at, size_t n, void *ret)
{
	const struct page *p;
	uint8_t *to = ret;

	while (n) {
		size_t skip = at % PAGE, some;
		int r = page_of(t, at, &p);

		if (r)
			return r;
		if (skip >= p->n)
			return -EBADMSG;
		some = MIN(n, p->n - skip);
		memcpy(to, p->bytes + skip, some);
		to += some;
		at += some;
		n -= some;
	}
	return 0;
}

/* ---- lists of values ---- */

bool gotab_has_flags(const struct gotab *t)
{
	return t->magic == MAGIC_118 || t->magic == MAGIC_120;
}

int gotab_info(struct gotab *t, const struct gotab_func *f, struct gotab_info *ret)
{
	/* struct _func of runtime2.go: address (of field bytes), name, args, deferreturn, pcsp, pcfile, pcln,
	 * npcdata, since 1.16 the unit, since 1.20 the start line, then, since 1.12, four bytes: id, flags
	 * (1.17), nothing, number of tables. Before 1.12 that was one number, whose last byte is zero. */
	size_t words = t->magic == MAGIC_12 ? 7 : t->magic == MAGIC_120 ? 9 : 8;
	uint32_t w[9] = { 0 };	/* behind the address */
	uint8_t last[4];
	int r = peek(t, f->record + t->field, words * sizeof(*w), w);
	uint64_t end = f->record + t->field + words * sizeof(*w);

	if (!r)
		r = peek(t, end, sizeof(last), last);
	if (r)
		return r;
	*ret = (struct gotab_info){ .pcsp = w[3], .pcfile = w[4], .pcln = w[5], .npcdata = w[6],
				    .unit = w[7], .start_line = w[8],
				    .flags = gotab_has_flags(t) ? last[1] : 0,
				    .nfuncdata = last[3], .more = end + sizeof(last) };
	return 0;
}

/* 32 bits in groups of 7, the lowest first. */
static int list_number(struct gotab *t, struct gotab_value *v, uint32_t *ret)
{
	uint32_t n = 0;
	uint8_t b;

	for (unsigned int shift = 0; shift < 35; shift += 7) {
		int r = peek(t, t->lists + v->list + v->read, 1, &b);

		if (r)
			return r;
		v->read++;
		n |= (uint32_t)(b & 0x7f) << shift;
		if (!(b & 0x80)) {
			*ret = n;
			return 0;
		}
	}
	return -EBADMSG;
}

/* A list is pairs of numbers: how much the value changes, the sign in the lowest bit, starting at -1,
 * and for how many instruction units it holds. A change of 0 that isn't the first ends it. */
int gotab_value(struct gotab *t, struct gotab_value *v)
{
	uint32_t unit = elf_machine(t->e) == EM_AARCH64 ? 4 : 1, change, length;
	bool first = !v->read;
	int r = t->steps ? list_number(t, v, &change) : -E2BIG;

	if (r)
		return r;
	t->steps--;
	if (!change && !first)
		return -ENOENT;
	r = list_number(t, v, &length);
	if (r)
		return r;
	if (first)
		v->value = -1;
	v->value = (int32_t)((uint32_t)v->value + ((change >> 1) ^ (0 - (change & 1))));
	v->start = v->end;
	v->end += (uint64_t)length * unit;
	return 0;
}

/* ---- by address ---- */

static int entry_start(struct gotab *t, uint64_t i, uint64_t *ret)
{
	uint64_t v = 0;
	int r = peek(t, t->functab + 2 * i * t->field, t->field, &v);

	if (!r)
		*ret = t->text + v;
	return r;
}

int gotab_find(struct gotab *t, uint64_t vaddr, struct gotab_func *ret)
{
	uint64_t low = 0, high = t->nfunc, start, end, record = 0;
	uint32_t name;
	int r;

	t->budget = GOTAB_FIND_READS;
	t->steps = GOTAB_FIND_STEPS;
	while (low < high) {	/* the first that begins behind it */
		uint64_t mid = low + (high - low) / 2;

		r = entry_start(t, mid, &start);
		if (r)
			return r;
		if (start > vaddr)
			high = mid;
		else
			low = mid + 1;
	}
	if (!low)
		return -ENOENT;
	r = entry_start(t, low - 1, &start);
	if (!r)
		r = entry_start(t, low, &end);	/* nfunc has an entry, too: the last one's end */
	if (!r)
		r = peek(t, t->functab + (2 * low - 1) * t->field, t->field, &record);
	if (!r && record > t->size - t->funcdata)
		r = -EBADMSG;
	if (!r)
		r = peek(t, t->funcdata + record + t->field, sizeof(name), &name);
	if (r)
		return r;
	if (vaddr >= end)
		return -ENOENT;
	*ret = (struct gotab_func){ .start = start, .end = end, .record = t->funcdata + record,
				    .name = t->names + name };
	return 0;
}

int gotab_value_at(struct gotab *t, const struct gotab_func *f, uint32_t list, uint64_t vaddr,
		   int32_t *ret)
{
	struct gotab_value v = { .list = list, .end = f->start };
	int r;

	while (!(r = gotab_value(t, &v)))
		if (v.end > vaddr) {
			*ret = v.value;
			return 0;
		}
	if (r != -ENOENT)
		return r;
	*ret = -1;
	return 0;
}

int gotab_file(struct gotab *t, const struct gotab_info *info, int32_t number, char *ret, size_t size)
{
	uint32_t offset;
	int r;

	if (number < 0)
		return -ENOENT;
	r = peek(t, t->units + ((uint64_t)info->unit + (uint32_t)number) * sizeof(offset),
		 sizeof(offset), &offset);
	if (r)
		return r;
	if (offset == UINT32_MAX || (t->magic == MAGIC_12 && !number))
		return -ENOENT;		/* the first word there is how many there are */
	for (size_t i = 0; i < size; i++) {
		r = peek(t, t->files + offset + i, 1, &ret[i]);
		if (r || !ret[i])
			return r;
	}
	return -ENOENT;
}

/* Where tables of functions are; 0: nowhere. */
static uint64_t gofunc(struct gotab *t)
{
	const struct elf_section *s = module_section(t, MODULE_GOFUNC_120);
	uint64_t at = s ? s->addr : 0, first = 0;
	size_t word = t->magic == MAGIC_118 ? MODULE_GOFUNC_118 : MODULE_GOFUNC_120;

	if (t->gofunc_tried)
		return t->gofunc;
	t->gofunc_tried = true;
	if (peek(t, t->functab, t->field, &first) || (!s && scan_for_module(t, first, &at)) ||
	    read_pointer(t, at + word * sizeof(uint64_t), &t->gofunc))
		t->gofunc = 0;
	return t->gofunc;
}

/* struct inlinedCall of symtabinl.go: 20 bytes until 1.19, then 16. */
static int read_call(struct gotab *t, const struct gotab_func *f, uint64_t tree, int32_t index,
		     struct gotab_call *ret)
{
	bool old = t->magic != MAGIC_120;
	size_t size = old ? 20 : 16;
	uint64_t offset;
	uint32_t w[5];
	int r = elf_vaddr_to_offset(t->e, tree + (uint32_t)index * size, &offset);

	if (!r)
		r = elf_read(t->e, offset, w, size);
	if (r)
		return r;
	*ret = (struct gotab_call){
		.callee = { .name = t->names + (old ? w[3] : w[1]) },
		.at = f->start + (old ? w[4] : w[2]),
		.start_line = old ? 0 : w[3],
	};
	return 0;
}

/* Where in the file the version is said. Without sections it is in the data, at a multiple of 16 (debug/buildinfo). */
static int buildinfo(const struct elf *e, uint64_t *ret)
{
	const struct elf_section *s = elf_section_by_name(e, ".go.buildinfo");
	const size_t n_magic = sizeof(BUILDINFO_MAGIC) - 1;
	const struct elf_segment *segments;
	char bytes[WINDOW];
	size_t n;

	if (s) {
		*ret = s->offset;
		return 0;
	}
	segments = elf_segments(e, &n);
	for (size_t i = 0; i < n && !elf_section_count(e); i++) {
		uint64_t end = MIN(segments[i].filesz, BUILDINFO_SEARCH);

		if (segments[i].type != PT_LOAD || !(segments[i].flags & PF_W))
			continue;
		for (uint64_t at = -segments[i].vaddr % 16; at < end; at += sizeof(bytes)) {
			size_t size = (size_t)MIN(sizeof(bytes), end - at);
			int r = elf_read(e, segments[i].offset + at, bytes, size);

			if (r)
				return r;
			for (size_t j = 0; j + n_magic <= size; j += 16) {
				*ret = segments[i].offset + at + j;
				if (!memcmp(bytes + j, BUILDINFO_MAGIC, n_magic))
					return 0;
			}
		}
	}
	return -ENOENT;
}

/* Whether the program says that it is of Go 1.14 or 1.15. */
static bool is_114(const struct gotab *t)
{
	uint64_t info, at, offset, text;
	char head[BUILDINFO_VERSION], version[7] = "";

	return !buildinfo(t->e, &info) && !elf_read(t->e, info, head, sizeof(head)) &&
	       !memcmp(head, BUILDINFO_MAGIC, sizeof(BUILDINFO_MAGIC) - 1) && head[BUILDINFO_POINTER] == 8 &&
	       !elf_read(t->e, info + BUILDINFO_VERSION, &at, sizeof(at)) &&
	       !elf_vaddr_to_offset(t->e, at, &offset) && !elf_read(t->e, offset, &text, sizeof(text)) &&
	       !elf_vaddr_to_offset(t->e, text, &offset) && !elf_read(t->e, offset, version, 6) &&
	       (!strcmp(version, "go1.14") || !strcmp(version, "go1.15"));
}

/* The number of the table with the tree; -1: unknown, so nothing is. */
static int inltree_number(struct gotab *t)
{
	if (!t->inltree)
		t->inltree = t->magic != MAGIC_12 ? FUNCDATA_INLTREE : is_114(t) ? FUNCDATA_INLTREE_114 : -1;
	return t->inltree;
}

/* The address of a function's tree of inlined calls. */
static int tree_of(struct gotab *t, const struct gotab_info *info, uint64_t *ret)
{
	uint64_t at = info->more + (uint64_t)info->npcdata * sizeof(uint32_t);
	uint32_t offset;
	int r;

	if (!gotab_has_flags(t)) {	/* pointers; where relocations fill them, their addend is in place, too */
		at = (at + 7) & ~UINT64_C(7);
		r = peek(t, at + (uint64_t)inltree_number(t) * sizeof(*ret), sizeof(*ret), ret);
		return r ? r : *ret ? 0 : -ENOENT;
	}
	r = peek(t, at + FUNCDATA_INLTREE * sizeof(offset), sizeof(offset), &offset);
	if (!r && (offset == UINT32_MAX || !gofunc(t)))
		r = -ENOENT;
	if (!r)
		*ret = t->gofunc + offset;
	return r;
}

int gotab_inlined(struct gotab *t, const struct gotab_func *f, const struct gotab_info *info,
		  uint64_t vaddr, struct gotab_call *ret)
{
	uint32_t list;
	uint64_t tree;
	int32_t index;
	int r;

	if (info->npcdata <= PCDATA_INLTREE || inltree_number(t) < 0 ||
	    info->nfuncdata <= inltree_number(t))
		return -ENOENT;
	r = peek(t, info->more + PCDATA_INLTREE * sizeof(list), sizeof(list), &list);
	if (!r && list)
		r = gotab_value_at(t, f, list, vaddr, &index);
	if (r || !list || index < 0)
		return r ? r : -ENOENT;
	r = tree_of(t, info, &tree);
	return r ? r : read_call(t, f, tree, index, ret);
}
