/* lineprog.c - see lineprog.h. Section numbers are of DWARF 5. */
#include "symbol/lineprog.h"

#include <dwarf.h>

#include "base/bytes.h"
#include "base/clock.h"

#define CHECK_EVERY 4096	/* rows between looks at the clock */

struct row {
	uint32_t delta;		/* of the address, from the sequence's start */
	uint32_t line, file;
	uint16_t column;
};

struct sequence {
	uint64_t start, end;
	uint32_t first, n;	/* rows */
};

struct entry {			/* of the tables of files and directories */
	const char *text;
	uint64_t dir;
};

struct entries {
	struct entry *v;
	size_t n, cap;
};

struct lineprog {
	struct entries dirs, files;
	uint16_t version;
	struct row *rows;
	size_t nrows, rows_cap;
	struct sequence *sequences;	/* by end */
	size_t nsequences, sequences_cap;
};

/* ---- header (6.2.4) ---- */

struct header {
	const struct dwarfimage *image;
	struct bytes program;
	size_t offset_size, address_size;
	uint8_t min_length, max_ops, line_range, opcode_base;
	int8_t line_base;
	uint8_t lengths[256];	/* operands of the standard opcodes */
};

static int add_entry(struct entries *t, const char *text, uint64_t dir)
{
	int r;

	if (t->n >= LINEPROG_FILES_MAX)
		return -E2BIG;
	r = array_grow(&t->v, &t->cap, t->n + 1, sizeof(*t->v));
	if (r)
		return r;
	t->v[t->n++] = (struct entry){ text, dir };
	return 0;
}

/* Versions 2 to 4: directory 0 and file 0 are the unit's own, which aren't in the tables. */
static int read_old_tables(struct lineprog *p, struct bytes *b)
{
	int r = add_entry(&p->dirs, "", 0);
	const char *text;

	if (!r)
		r = add_entry(&p->files, NULL, 0);
	while (!r) {
		text = bytes_text(b);
		if (!*text)
			break;
		r = add_entry(&p->dirs, text, 0);
	}
	while (!r) {
		uint64_t dir;

		text = bytes_text(b);
		if (!*text)
			break;
		dir = bytes_uleb(b);
		bytes_uleb(b);	/* time */
		bytes_uleb(b);	/* size */
		r = add_entry(&p->files, text, dir);
	}
	return r ? r : b->bad ? -EBADMSG : 0;
}

static const char *text_at(const struct header *h, enum dwarf_section s, uint64_t offset)
{
	size_t size;
	const uint8_t *p = dwarfimage_section(h->image, s, &size);
	struct bytes b;

	if (offset >= size)
		return "";
	b = bytes_of(p + offset, size - offset);
	return bytes_text(&b);
}

/* A value of an entry: as text or as number. False: a form that such tables don't use (6.2.4.1). */
static bool read_form(const struct header *h, struct bytes *b, uint64_t form, const char **ret_text,
		      uint64_t *ret)
{
	switch (form) {
	case DW_FORM_string:
		*ret_text = bytes_text(b);
		return true;
	case DW_FORM_line_strp:
		*ret_text = text_at(h, DWARF_LINE_STR, bytes_uint(b, h->offset_size));
		return true;
	case DW_FORM_strp:
		*ret_text = text_at(h, DWARF_STR, bytes_uint(b, h->offset_size));
		return true;
	case DW_FORM_udata:
		*ret = bytes_uleb(b);
		return true;
	case DW_FORM_data1:
		*ret = bytes_uint(b, 1);
		return true;
	case DW_FORM_data2:
		*ret = bytes_uint(b, 2);
		return true;
	case DW_FORM_data4:
		*ret = bytes_uint(b, 4);
		return true;
	case DW_FORM_data8:
		*ret = bytes_uint(b, 8);
		return true;
	case DW_FORM_data16:
		bytes_get(b, 16);
		return true;
	case DW_FORM_block:
		bytes_get(b, bytes_uleb(b));
		return true;
	}
	return false;
}

/* Version 5: a description of the entries, then the entries. */
static int read_table(const struct header *h, struct bytes *b, struct entries *t)
{
	struct {
		uint64_t type, form;
	} format[16];
	size_t nformat = bytes_uint(b, 1);
	uint64_t count;
	int r = 0;

	if (nformat > ARRAY_SIZE(format))
		return -ENOTSUP;
	for (size_t i = 0; i < nformat; i++) {
		format[i].type = bytes_uleb(b);
		format[i].form = bytes_uleb(b);
	}
	count = bytes_uleb(b);
	if (count && !nformat)
		return -EBADMSG;
	for (uint64_t n = 0; n < count && !r && !b->bad; n++) {
		const char *text = "";
		uint64_t dir = 0;

		for (size_t i = 0; i < nformat; i++) {
			const char *s = "";
			uint64_t v = 0;

			if (!read_form(h, b, format[i].form, &s, &v))
				return -ENOTSUP;
			if (format[i].type == DW_LNCT_path)
				text = s;
			else if (format[i].type == DW_LNCT_directory_index)
				dir = v;
		}
		r = add_entry(t, text, dir);
	}
	return r ? r : b->bad ? -EBADMSG : 0;
}

static int read_header(struct lineprog *p, const struct dwarfimage *image, uint64_t offset,
		       struct header *h)
{
	size_t size;
	const uint8_t *section = dwarfimage_section(image, DWARF_LINE, &size), *lengths;
	struct bytes b = bytes_of(section, size), tables;
	uint64_t length;

	*h = (struct header){ .image = image, .offset_size = 4, .address_size = 8, .max_ops = 1 };
	bytes_get(&b, offset);
	length = bytes_uint(&b, 4);
	if (length == 0xffffffff) {	/* 7.4: 64-bit format */
		length = bytes_uint(&b, 8);
		h->offset_size = 8;
	}
	if (b.bad || length > bytes_left(&b))
		return -EBADMSG;
	b.end = b.p + length;
	p->version = (uint16_t)bytes_uint(&b, 2);
	if (p->version < 2 || p->version > 5)
		return b.bad ? -EBADMSG : -ENOTSUP;
	if (p->version >= 5) {
		h->address_size = bytes_uint(&b, 1);
		bytes_uint(&b, 1);	/* segment selectors: none on our machines */
	}
	length = bytes_uint(&b, h->offset_size);
	tables = b;
	if (b.bad || !bytes_get(&b, length) || h->address_size != 8)
		return -EBADMSG;
	h->program = b;
	tables.end = b.p;
	h->min_length = (uint8_t)bytes_uint(&tables, 1);
	if (p->version >= 4)
		h->max_ops = (uint8_t)bytes_uint(&tables, 1);
	bytes_uint(&tables, 1);		/* default of is_stmt: every row counts here */
	h->line_base = (int8_t)bytes_uint(&tables, 1);
	h->line_range = (uint8_t)bytes_uint(&tables, 1);
	h->opcode_base = (uint8_t)bytes_uint(&tables, 1);
	lengths = bytes_get(&tables, h->opcode_base ? h->opcode_base - 1u : 0);
	if (tables.bad || !h->opcode_base)
		return -EBADMSG;
	memcpy(h->lengths + 1, lengths, h->opcode_base - 1u);
	if (p->version < 5)
		return read_old_tables(p, &tables);
	return read_table(h, &tables, &p->dirs) ?: read_table(h, &tables, &p->files);
}

/* ---- program (6.2.5) ---- */

struct machine {
	struct lineprog *p;
	const struct header *h;
	const struct elf *code;
	uint64_t deadline;
	uint64_t address, start;	/* of the sequence at hand, if it has rows */
	uint64_t op_index;
	uint64_t file, line, column;
	size_t first;			/* row of the sequence at hand */
};

static void reset(struct machine *m)
{
	m->address = m->op_index = m->column = 0;
	m->file = m->line = 1;
	m->first = m->p->nrows;
}

static int emit(struct machine *m)
{
	struct lineprog *p = m->p;
	struct row *last = p->nrows > m->first ? &p->rows[p->nrows - 1] : NULL;
	struct row row = { .line = (uint32_t)MIN(m->line, UINT32_MAX),
			   .file = (uint32_t)MIN(m->file, UINT32_MAX),
			   .column = (uint16_t)MIN(m->column, UINT16_MAX) };
	int r;

	if (!last)
		m->start = m->address;
	if (m->address < m->start || m->address - m->start > UINT32_MAX)
		return 0;	/* rows of a sequence ascend (6.2.5) */
	row.delta = (uint32_t)(m->address - m->start);
	if (last && row.delta < last->delta)
		return 0;
	if (last && row.delta == last->delta) {	/* the last of one address counts */
		*last = row;
		return 0;
	}
	if (p->nrows >= LINEPROG_ROWS_MAX)
		return -E2BIG;
	if (p->nrows % CHECK_EVERY == 0 && clock_monotonic() > m->deadline)
		return -ETIME;
	r = array_grow(&p->rows, &p->rows_cap, p->nrows + 1, sizeof(row));
	if (!r)
		p->rows[p->nrows++] = row;
	return r;
}

static int end_sequence(struct machine *m)
{
	struct lineprog *p = m->p;
	int r = 0;

	if (p->nrows == m->first || m->address <= m->start || !elf_exec_segment(m->code, m->start)) {
		p->nrows = m->first;
		reset(m);
		return 0;
	}
	r = array_grow(&p->sequences, &p->sequences_cap, p->nsequences + 1, sizeof(*p->sequences));
	if (r)
		return r;
	p->sequences[p->nsequences++] = (struct sequence){
		m->start, m->address, (uint32_t)m->first, (uint32_t)(p->nrows - m->first)
	};
	reset(m);
	return 0;
}

/* 6.2.5.1: an "operation advance". Ours have one operation an instruction; the formula is there for all. */
static void advance(struct machine *m, uint64_t n)
{
	uint64_t ops = MAX(m->h->max_ops, 1), at = m->op_index + n;

	m->address += m->h->min_length * (at / ops);
	m->op_index = at % ops;
}

static int extended(struct machine *m, struct bytes *b)
{
	uint64_t n = bytes_uleb(b);
	const uint8_t *p = bytes_get(b, n);
	struct bytes args;

	if (!p || !n)
		return -EBADMSG;
	args = bytes_of(p, n);
	switch (bytes_uint(&args, 1)) {
	case DW_LNE_end_sequence:
		return end_sequence(m);
	case DW_LNE_set_address:
		m->address = bytes_uint(&args, MIN(n - 1, sizeof(m->address)));
		m->op_index = 0;
		return 0;
	case DW_LNE_define_file: {	/* versions 2 to 4 */
		const char *text = bytes_text(&args);
		uint64_t dir = bytes_uleb(&args);

		return args.bad ? -EBADMSG : add_entry(&m->p->files, text, dir);
	}
	}
	return 0;
}

static int standard(struct machine *m, uint8_t opcode, struct bytes *b)
{
	switch (opcode) {
	case DW_LNS_copy:
		return emit(m);
	case DW_LNS_advance_pc:
		advance(m, bytes_uleb(b));
		return 0;
	case DW_LNS_advance_line:
		m->line = (uint32_t)(m->line + (uint64_t)bytes_sleb(b));
		return 0;
	case DW_LNS_set_file:
		m->file = bytes_uleb(b);
		return 0;
	case DW_LNS_set_column:
		m->column = bytes_uleb(b);
		return 0;
	case DW_LNS_const_add_pc:
		advance(m, (255u - m->h->opcode_base) / m->h->line_range);
		return 0;
	case DW_LNS_fixed_advance_pc:
		m->address += bytes_uint(b, 2);
		m->op_index = 0;
		return 0;
	}
	for (size_t i = 0; i < m->h->lengths[opcode]; i++)
		bytes_uleb(b);
	return 0;
}

static int special(struct machine *m, uint8_t opcode)
{
	unsigned int n = opcode - m->h->opcode_base;

	advance(m, n / m->h->line_range);
	m->line = (uint32_t)(m->line + (uint64_t)(int64_t)m->h->line_base + n % m->h->line_range);
	return emit(m);
}

static int by_end(const void *a, const void *b)
{
	const struct sequence *x = a, *y = b;

	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

static int run(struct machine *m)
{
	struct lineprog *p = m->p;
	struct bytes b = m->h->program;
	uint64_t n = 0;
	int r = m->h->line_range ? 0 : -EBADMSG;

	reset(m);
	while (!r && bytes_left(&b)) {
		uint8_t opcode = (uint8_t)bytes_uint(&b, 1);

		if (opcode >= m->h->opcode_base)
			r = special(m, opcode);
		else
			r = opcode ? standard(m, opcode, &b) : extended(m, &b);
		if (b.bad)
			r = -EBADMSG;
		if (++n % (16 * CHECK_EVERY) == 0 && clock_monotonic() > m->deadline)
			r = -ETIME;
	}
	if (r && (r != -EBADMSG || !p->nsequences))
		return r;
	if (p->nsequences)
		qsort(p->sequences, p->nsequences, sizeof(*p->sequences), by_end);
	return 0;
}

/* ---- outside ---- */

int lineprog_read(const struct dwarfimage *image, const struct elf *code, uint64_t offset,
		  uint64_t deadline, struct lineprog **ret)
{
	struct lineprog *p cleanup(lineprog_cleanup) = calloc(1, sizeof(*p));
	struct machine m = { .p = p, .code = code, .deadline = deadline };
	struct header h;
	int r;

	if (!p)
		return -ENOMEM;
	r = read_header(p, image, offset, &h);
	m.h = &h;
	if (!r)
		r = run(&m);
	if (r)
		return r;
	*ret = take(p);
	return 0;
}

int lineprog_read_files(const struct dwarfimage *image, uint64_t offset, struct lineprog **ret)
{
	struct lineprog *p cleanup(lineprog_cleanup) = calloc(1, sizeof(*p));
	struct header h;
	int r;

	if (!p)
		return -ENOMEM;
	r = read_header(p, image, offset, &h);
	if (r)
		return r;
	*ret = take(p);
	return 0;
}

void lineprog_free(struct lineprog *p)
{
	if (!p)
		return;
	free(p->dirs.v);
	free(p->files.v);
	free(p->rows);
	free(p->sequences);
	free(p);
}

/* The row of a sequence: the last one that isn't behind the address. */
static const struct row *row_at(const struct lineprog *p, const struct sequence *s, uint64_t vaddr)
{
	const struct row *rows = p->rows + s->first;
	size_t low = 0, high = s->n;	/* rows[0].delta is 0 */

	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;

		if (rows[mid].delta <= vaddr - s->start)
			low = mid;
		else
			high = mid;
	}
	return &rows[low];
}

bool lineprog_lookup(const struct lineprog *p, uint64_t vaddr, struct lineprog_row *ret)
{
	size_t low = 0, high = p->nsequences;
	const struct row *row;

	while (low < high) {	/* the first that ends behind the address */
		size_t mid = low + (high - low) / 2;

		if (p->sequences[mid].end > vaddr)
			high = mid;
		else
			low = mid + 1;
	}
	if (low == p->nsequences || p->sequences[low].start > vaddr)
		return false;
	row = row_at(p, &p->sequences[low], vaddr);
	*ret = (struct lineprog_row){ row->file, row->line, row->column };
	return true;
}

/* Takes the last part of a path away, if it has one that ".." can take. */
static bool go_up(struct buf *b)
{
	const char *slash = b->len ? strrchr(b->data, '/') : NULL;
	const char *last = slash ? slash + 1 : b->data;

	if (!b->len || !strcmp(last, ".."))
		return false;
	if (slash == b->data)		/* the root, or in it: "/.." is "/" */
		b->len = 1;
	else
		b->len = slash ? (size_t)(slash - b->data) : 0;
	b->data[b->len] = 0;
	return true;
}

/* Appends the parts of a path to what is there, resolving "." and "..". */
static void append_path(struct buf *b, const char *path)
{
	if (*path == '/') {
		buf_reset(b);
		buf_char(b, '/');
	}
	while (*path) {
		size_t n = strcspn(path, "/");
		bool dot = n == 1 && *path == '.', up = n == 2 && !strncmp(path, "..", 2);

		if (n && !dot && !(up && go_up(b))) {
			if (b->len && b->data[b->len - 1] != '/')
				buf_char(b, '/');
			buf_bytes(b, path, n);
		}
		path += n + (path[n] == '/');
	}
}

bool lineprog_path(const struct lineprog *p, uint64_t file, const char *comp_dir, struct buf *ret)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(LINEPROG_PATH_MAX);
	const struct entry *e;

	if (file >= p->files.n || !p->files.v[file].text)
		return false;
	e = &p->files.v[file];
	/* 6.2.4: since version 5 directory 0 is the unit's own, as comp_dir is */
	append_path(&b, p->version >= 5 && p->dirs.n ? p->dirs.v[0].text : comp_dir);
	if (e->dir && e->dir < p->dirs.n)
		append_path(&b, p->dirs.v[e->dir].text);
	append_path(&b, e->text);
	if (b.err || !b.len)
		return false;
	buf_bytes(ret, b.data, b.len);
	return true;
}

uint64_t lineprog_memory(const struct lineprog *p)
{
	return sizeof(*p) + p->rows_cap * sizeof(*p->rows) +
	       p->sequences_cap * sizeof(*p->sequences) +
	       (p->files.cap + p->dirs.cap) * sizeof(struct entry);
}
