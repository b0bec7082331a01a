/* jitdump.c - see jitdump.h. Fields are copied out byte-wise: records aren't aligned. */
#include "symbol/jitdump.h"

#include <ctype.h>
#include <sys/stat.h>

#include "base/clock.h"

#define MAGIC	      0x4A695444u	/* "JiTD" */
#define MAGIC_SWAPPED 0x4454694Au
#define ARCH_STAMPS   1u		/* flag of the header: the processor's counter */
#define ADDR_MAX      (1ULL << 56)	/* user addresses lie below */
#define V8_SHIFT      0x40		/* see line_in() */

enum record_type {
	CODE_LOAD = 0,
	CODE_MOVE = 1,
	CODE_DEBUG_INFO = 2,
	CODE_CLOSE = 3,
	CODE_UNWINDING_INFO = 4,
};

enum {
	WINDOW = 64 << 10,
	HOPS_MAX = 4,		/* records between lines and the code that they belong to */
	HEADER_MAX = 4096,
};

struct file_header {
	uint32_t magic, version, total_size, elf_machine, pad, pid;
	uint64_t stamp, flags;
};

struct record {
	uint32_t id, total_size;
	uint64_t stamp;
};

struct load {
	uint32_t pid, tid;
	uint64_t vma, addr, size, index;
	/* char name[], then the code */
};

struct move {
	uint32_t pid, tid;
	uint64_t vma, old_addr, new_addr, size, index;
};

struct debug_info {
	uint64_t addr, n;
	/* struct line_entry[], each with its file name */
};

struct line_entry {
	uint64_t addr;
	uint32_t line, column;
	/* char file[]; "\xff" is that of the entry before */
};

_Static_assert(sizeof(struct file_header) == 40, "no padding");
_Static_assert(sizeof(struct record) == 16, "no padding");
_Static_assert(sizeof(struct load) == 40, "no padding");
_Static_assert(sizeof(struct move) == 48, "no padding");
_Static_assert(sizeof(struct line_entry) == 16, "no padding");

/* ---- reading ---- */

struct window {			/* bytes of the file at hand */
	int fd;
	uint64_t at;
	size_t len;
	char bytes[WINDOW];
};

/* n (at most WINDOW) bytes at a place, or NULL where the file has fewer. */
static const char *look(struct window *w, uint64_t at, size_t n)
{
	ssize_t k;

	if (at >= w->at && at - w->at <= w->len && w->len - (size_t)(at - w->at) >= n)
		return w->bytes + (at - w->at);
	do
		k = pread(w->fd, w->bytes, WINDOW, (off_t)at);
	while (k < 0 && errno == EINTR);
	w->at = at;
	w->len = k > 0 ? (size_t)k : 0;
	return w->len >= n ? w->bytes : NULL;
}

static bool copy(struct window *w, uint64_t at, void *ret, size_t n)
{
	const char *p = look(w, at, n);

	if (p)
		memcpy(ret, p, n);
	return p != NULL;
}

int jitdump_open(struct jitdump *d, int fd)
{
	struct file_header h;
	ssize_t n = pread(fd, &h, sizeof(h), 0);
	int r = n < 0 ? -errno : 0;

	if (!r && n != sizeof(h))
		r = -EBADMSG;
	if (!r && (h.magic == MAGIC_SWAPPED || (h.magic == MAGIC && h.version > 1)))
		r = -ENOTSUP;
	else if (!r && (h.magic != MAGIC || h.total_size < sizeof(h) || h.total_size > HEADER_MAX))
		r = -EBADMSG;
	if (r) {
		close(fd);
		return r;
	}
	*d = (struct jitdump){
		.fd = fd,
		.read = h.total_size,
		.timed = !(h.flags & ARCH_STAMPS),
	};
	return 0;
}

void jitdump_close(struct jitdump *d)
{
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
}

/* ---- records into the map ---- */

static bool sane_range(uint64_t addr, uint64_t size)
{
	return size && addr < ADDR_MAX && size <= ADDR_MAX - addr;
}

static int add_load(struct jitdump *d, struct window *w, struct codemap *codes, uint64_t at,
		    const struct record *rec)
{
	struct load l;
	bool lines;

	if (rec->total_size <= sizeof(*rec) + sizeof(l) ||
	    !copy(w, at + sizeof(*rec), &l, sizeof(l))) {
		d->broken = true;
		return 0;
	}
	if (!sane_range(l.addr, l.size))
		return 0;	/* V8 lists builtins that are empty */
	d->loads++;
	lines = d->lines_at && d->lines_addr == l.addr;
	return codemap_add(codes, l.addr, l.addr + l.size, lines ? d->lines_at : at);
}

static int add_move(struct jitdump *d, struct window *w, struct codemap *codes, uint64_t at,
		    const struct record *rec, size_t *work)
{
	const struct code_piece *p;
	uint64_t where = CODEMAP_GONE;
	struct move m;
	int r;

	if (rec->total_size < sizeof(*rec) + sizeof(m) || !copy(w, at + sizeof(*rec), &m, sizeof(m))) {
		d->broken = true;
		return 0;
	}
	if (!sane_range(m.old_addr, m.size) || !sane_range(m.new_addr, m.size))
		return 0;
	d->moves++;
	*work += codes->n;
	if (*work < JITDUMP_MOVE_WORK) {
		r = codemap_settle(codes);
		if (r)
			return r;
		p = codemap_find(codes, m.old_addr);
		where = p ? p->where : CODEMAP_GONE;
	} else {
		d->lost_moves++;
	}
	r = codemap_add(codes, m.old_addr, m.old_addr + m.size, CODEMAP_GONE);
	return r ? r : codemap_add(codes, m.new_addr, m.new_addr + m.size, where);
}

static void note_lines(struct jitdump *d, struct window *w, uint64_t at, const struct record *rec)
{
	struct debug_info i;

	d->lines_at = 0;
	if (rec->total_size < sizeof(*rec) + sizeof(i) || !copy(w, at + sizeof(*rec), &i, sizeof(i)))
		return;
	d->lines_at = at;
	d->lines_addr = i.addr;
}

static int add_record(struct jitdump *d, struct window *w, struct codemap *codes,
		      const struct record *rec, size_t *work)
{
	int r = 0;

	switch (rec->id) {
	case CODE_LOAD:
		r = add_load(d, w, codes, d->read, rec);
		d->lines_at = 0;
		break;
	case CODE_MOVE:
		r = add_move(d, w, codes, d->read, rec, work);
		break;
	case CODE_DEBUG_INFO:
		note_lines(d, w, d->read, rec);
		break;
	case CODE_CLOSE:
		d->closed = true;
		break;
	default:		/* unwinding info, and what later versions add */
		break;
	}
	return r;
}

/* Whether there is a whole record at d->read. */
static bool next_record(struct jitdump *d, struct window *w, uint64_t size, struct record *ret)
{
	if (d->broken || d->closed || !copy(w, d->read, ret, sizeof(*ret)))
		return false;
	if (ret->total_size < sizeof(*ret)) {
		d->broken = true;
		return false;
	}
	return ret->total_size <= size - d->read;	/* else it is being written */
}

uint64_t jitdump_next_time(const struct jitdump *d)
{
	struct record rec;
	struct stat st;

	if (!d->timed || d->broken || d->closed || fstat(d->fd, &st) ||
	    pread(d->fd, &rec, sizeof(rec), (off_t)d->read) != sizeof(rec) ||
	    rec.total_size > (uint64_t)st.st_size - d->read)
		return UINT64_MAX;
	return rec.stamp;
}

int jitdump_update(struct jitdump *d, struct codemap *codes, uint64_t until, uint64_t deadline,
		   bool *ret_changed)
{
	struct window *w cleanup(freep_cleanup) = NULL;
	size_t work = 0, n = 0;
	struct record rec;
	struct stat st;
	int r = 0, s;

	*ret_changed = false;
	if (d->broken || d->closed || fstat(d->fd, &st) || (uint64_t)st.st_size <= d->read)
		return 0;
	w = malloc(sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->fd = d->fd;
	w->at = w->len = 0;
	while (!r && next_record(d, w, (uint64_t)st.st_size, &rec)) {
		if (d->timed && rec.stamp > until)
			break;
		r = add_record(d, w, codes, &rec, &work);
		if (r || d->broken)
			break;
		d->read += rec.total_size;
		*ret_changed = true;
		if (++n % 256 == 0 && clock_monotonic() >= deadline)
			r = -EAGAIN;
	}
	s = codemap_settle(codes);
	return s ? s : r;
}

/* ---- one piece of code ---- */

/* A string of the file, at most to `end` and cut to the buffer. Its length there, its NUL not
 * counted, or -1 if it has no end. */
static ssize_t copy_string(struct window *w, uint64_t at, uint64_t end, char *ret, size_t size)
{
	size_t n = (size_t)MIN(end - at, (uint64_t)WINDOW);
	const char *p = look(w, at, n);
	size_t len = p ? strnlen(p, n) : n, keep = MIN(len, size - 1);

	if (len == n)
		return -1;
	memcpy(ret, p, keep);
	ret[keep] = '\0';
	return (ssize_t)len;
}

static bool is_text(const char *s)
{
	for (; *s; s++)
		if (iscntrl((unsigned char)*s))
			return false;
	return true;
}

struct lines {			/* of one function */
	uint64_t base, end;	/* where it was loaded */
	uint64_t lowest, addr;	/* first entry; looked for, in the entries' terms */
	uint64_t best;		/* entry with the greatest address not above addr */
};

/* Walks the entries of a record of lines. Keeps the entry that covers l->addr if `ret` is given, else
 * only finds the lowest. False: they don't fill the record as they should, or lie outside of the code:
 * Node 20 writes freed memory as file names now and then, NULs among them. */
static bool walk_lines(struct window *w, uint64_t at, const struct record *rec, struct lines *l,
		       struct jitdump_code *ret)
{
	uint64_t end = at + rec->total_size;
	char file[JITDUMP_FILE_MAX + 1] = "", text[JITDUMP_FILE_MAX + 1];
	struct debug_info i;
	struct line_entry e;

	if (rec->total_size < sizeof(*rec) + sizeof(i) || !copy(w, at + sizeof(*rec), &i, sizeof(i)))
		return false;
	at += sizeof(*rec) + sizeof(i);
	for (uint64_t n = 0; n < i.n; n++) {
		ssize_t len;

		if (end - at <= sizeof(e) || !copy(w, at, &e, sizeof(e)))
			return false;
		len = copy_string(w, at + sizeof(e), end, text, sizeof(text));
		if (len < 0 || e.addr < l->base || e.addr > l->end + V8_SHIFT || !is_text(text))
			return false;
		at += sizeof(e) + (uint64_t)len + 1;
		if (strcmp(text, "\xff"))
			memcpy(file, text, sizeof(file));
		l->lowest = MIN(l->lowest, e.addr);
		if (ret && e.addr <= l->addr && e.addr >= l->best) {
			l->best = e.addr;
			ret->line = e.line;
			memcpy(ret->file, file, sizeof(ret->file));
		}
	}
	return at == end;
}

/* V8 counts its entries from the ELF header that perf puts in front of the code (64 bytes): no entry is
 * below that. Others have one at the function's very start. */
static void line_in(struct window *w, uint64_t at, const struct record *rec, const struct load *load,
		    uint64_t addr, struct jitdump_code *ret)
{
	struct lines l = { .base = load->addr, .end = load->addr + load->size,
			   .lowest = UINT64_MAX };

	if (rec->total_size > JITDUMP_LINES_BYTES || !walk_lines(w, at, rec, &l, NULL))
		return;
	l.addr = addr + (l.lowest >= load->addr + V8_SHIFT && l.lowest != UINT64_MAX ? V8_SHIFT : 0);
	(void)walk_lines(w, at, rec, &l, ret);
}

/* From the record that a piece points to, its lines or the code itself, to the code. */
static bool find_load(struct window *w, uint64_t at, uint64_t *ret_at, struct record *ret_rec,
		      struct load *ret)
{
	for (int i = 0; i < HOPS_MAX && copy(w, at, ret_rec, sizeof(*ret_rec)); i++) {
		if (ret_rec->id == CODE_LOAD) {
			*ret_at = at;
			return ret_rec->total_size > sizeof(*ret_rec) + sizeof(*ret) &&
			       copy(w, at + sizeof(*ret_rec), ret, sizeof(*ret)) &&
			       sane_range(ret->addr, ret->size);
		}
		if (ret_rec->total_size < sizeof(*ret_rec))
			return false;
		at += ret_rec->total_size;
	}
	return false;
}

int jitdump_name(const struct jitdump *d, const struct code_piece *piece, uint64_t addr,
		 struct jitdump_code *ret)
{
	struct window *w cleanup(freep_cleanup) = malloc(sizeof(*w));
	struct record first, rec;
	struct load load;
	uint64_t at, name_at;

	if (!w)
		return -ESTALE;
	w->fd = d->fd;
	w->at = w->len = 0;
	if (!copy(w, piece->where, &first, sizeof(first)) ||
	    !find_load(w, piece->where, &at, &rec, &load))
		return -ESTALE;
	name_at = at + sizeof(rec) + sizeof(load);
	if (copy_string(w, name_at, at + rec.total_size, ret->name, sizeof(ret->name)) < 0 ||
	    !ret->name[0])
		return -ESTALE;
	ret->file[0] = '\0';
	ret->line = 0;
	ret->start = load.addr;
	if (addr < load.addr || addr - load.addr >= load.size) {	/* moved */
		ret->start = piece->start;
		if (piece->end - piece->start != load.size)	/* and covered in part: where is it? */
			return 0;
		addr = load.addr + (addr - piece->start);
	}
	if (first.id == CODE_DEBUG_INFO)
		line_in(w, piece->where, &first, &load, addr, ret);
	return 0;
}
