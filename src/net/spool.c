/* spool.c - see spool.h. Top to bottom: records, segments, opening, appending, reading, marking. */
#include "net/spool.h"

#include <dirent.h>
#include <endian.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <zlib.h>

#define SEGMENT_MAX_BYTES ((uint64_t)4 << 20)
#define SUFFIX		  ".seg"

enum { PATH_LEN = 4096 };

/* ---- records ---- */

static const unsigned char magic[4] = { 'w', 'k', 0xf5, 'R' };	/* no UTF-8, no gzip */

struct header {	/* little-endian */
	unsigned char magic[4];
	unsigned char state, zero[3];
	uint32_t len, crc;	/* the CRC is over len, put_nanos and the payload */
	int64_t put_nanos;	/* the item's */
};

_Static_assert(sizeof(struct header) == SPOOL_HEADER, "no padding");

static uint32_t record_crc(const struct header *h, const void *payload, size_t n)
{
	uLong crc = crc32(0, (const Bytef *)&h->len, sizeof(h->len));

	crc = crc32(crc, (const Bytef *)&h->put_nanos, sizeof(h->put_nanos));
	return (uint32_t)crc32(crc, payload, (uInt)n);
}

/* The record that starts at p; false if there is no whole one. */
static bool read_record(const unsigned char *p, size_t n, struct spool_record *ret)
{
	struct header h;

	if (n < sizeof(h))
		return false;
	memcpy(&h, p, sizeof(h));
	ret->len = le32toh(h.len);
	ret->size = sizeof(h) + ret->len;
	ret->state = (enum spool_state)h.state;
	ret->payload = p + sizeof(h);
	return !memcmp(h.magic, magic, sizeof(magic)) &&
	       (h.state == SPOOL_LIVE || h.state == SPOOL_DONE) && ret->len <= ITEM_MAX_BYTES &&
	       ret->len <= n - sizeof(h) && record_crc(&h, ret->payload, ret->len) == le32toh(h.crc);
}

bool spool_scan(const unsigned char *p, size_t n, size_t *offset, struct spool_record *ret,
		uint64_t *torn)
{
	size_t at = *offset;
	const unsigned char *next;

	if (at < n && !read_record(p + at, n - at, ret)) {
		++*torn;
		do {
			next = memmem(p + at + 1, n - at - 1, magic, sizeof(magic));
			at = next ? (size_t)(next - p) : n;
		} while (at < n && !read_record(p + at, n - at, ret));
	}
	if (at >= n) {
		*offset = n;
		return false;
	}
	ret->offset = at;
	*offset = at + ret->size;
	return true;
}

/* ---- segments ---- */

struct segment {
	uint64_t id;
	uint64_t bytes;
	uint64_t live;	/* records not delivered yet */
};

struct spool {
	char *dir;
	uint64_t max_bytes, max_age_ns, segment_bytes;
	int dir_fd, write_fd;		/* -1: nothing open to append to */
	struct segment *segments;	/* oldest first; the last may be written to */
	size_t n, cap;
	uint64_t next_id;

	/* the reader */
	uint64_t read_id;		/* of the segment in `loaded` */
	size_t read_offset;
	struct buf loaded;

	struct spool_pos *held, *released;	/* released: what the reader has passed */
	size_t nheld, nreleased, held_cap, released_cap;
	bool released_last;		/* whose turn it is: released or unread ones */
	struct spool_stats stats;
};

static void segment_name(uint64_t id, char ret[static 32])
{
	snprintf(ret, 32, "%016" PRIx64 SUFFIX, id);
}

static struct segment *find_segment(const struct spool *s, uint64_t id)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->segments[i].id == id)
			return &s->segments[i];
	return NULL;
}

static int open_segment(const struct spool *s, uint64_t id, int flags)
{
	char name[32];
	int fd;

	segment_name(id, name);
	fd = openat(s->dir_fd, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? -errno : fd;
}

static void forget_released(struct spool *s, uint64_t id)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->nreleased; i++)
		if (s->released[i].segment != id)
			s->released[kept++] = s->released[i];
	s->nreleased = kept;
}

static uint64_t held_of(const struct spool *s, uint64_t id)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->nheld; i++)
		n += s->held[i].segment == id;
	return n;
}

/* Holds a record, and sees to it that it can be released later. */
static int reserve(struct spool *s)
{
	int r = array_grow(&s->held, &s->held_cap, s->nheld + 1, sizeof(*s->held));

	return r ? r
		 : array_grow(&s->released, &s->released_cap, s->nheld + s->nreleased + 1,
			      sizeof(*s->released));
}

static void seal(struct spool *s)
{
	if (s->write_fd < 0)
		return;
	(void)fdatasync(s->write_fd);
	close(s->write_fd);
	s->write_fd = -1;
}

/* What is held of it lives on in its holder. */
static void remove_segment(struct spool *s, size_t i)
{
	char name[32];

	if (i == s->n - 1)
		seal(s);
	segment_name(s->segments[i].id, name);
	unlinkat(s->dir_fd, name, 0);
	s->stats.bytes -= s->segments[i].bytes;
	s->stats.items -= s->segments[i].live - held_of(s, s->segments[i].id);
	forget_released(s, s->segments[i].id);
	memmove(s->segments + i, s->segments + i + 1, (s->n - i - 1) * sizeof(*s->segments));
	s->n--;
}

/* All of a segment's file into memory. */
static int load(struct spool *s, const struct segment *seg)
{
	cleanup(fd_cleanup) int fd = open_segment(s, seg->id, O_RDONLY);
	unsigned char chunk[65536];
	ssize_t n;

	if (fd < 0)
		return fd;
	buf_reset(&s->loaded);
	while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		buf_bytes(&s->loaded, chunk, (size_t)n);
	}
	return s->loaded.err;
}

static const unsigned char *loaded_bytes(const struct spool *s)
{
	return s->loaded.data ? (const unsigned char *)s->loaded.data : (const unsigned char *)"";
}

/* ---- opening ---- */

static int parse_name(const char *name, uint64_t *ret)
{
	char again[32], *end;

	*ret = strtoull(name, &end, 16);
	segment_name(*ret, again);
	return strcmp(again, name) ? -EINVAL : 0;
}

static int by_id(const void *a, const void *b)
{
	const struct segment *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

static int list_segments(struct spool *s)
{
	int fd = openat(s->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;
	uint64_t id;
	int r = 0;

	if (!d) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return r;
	}
	while (!r && (de = readdir(d))) {
		if (parse_name(de->d_name, &id))
			continue;
		r = array_grow(&s->segments, &s->cap, s->n + 1, sizeof(*s->segments));
		if (!r)
			s->segments[s->n++] = (struct segment){ .id = id };
	}
	closedir(d);
	if (s->n)
		qsort(s->segments, s->n, sizeof(*s->segments), by_id);
	return r;
}

static void count_records(struct spool *s, struct segment *seg)
{
	struct spool_record rec;
	uint64_t torn = 0;
	size_t at = 0;

	while (spool_scan(loaded_bytes(s), s->loaded.len, &at, &rec, &torn))
		seg->live += rec.state == SPOOL_LIVE;
	seg->bytes = s->loaded.len;
	s->stats.items += seg->live;
	s->stats.bytes += seg->bytes;
	s->stats.torn += torn;
	s->stats.found += seg->live + torn;
}

static int scan_directory(struct spool *s)
{
	int r = list_segments(s);

	for (size_t i = 0; i < s->n && !r;) {
		s->next_id = s->segments[i].id + 1;
		r = load(s, &s->segments[i]);
		if (r == -ENOENT || r == -E2BIG || r == -ELOOP)
			r = 0;	/* no segment of ours: counts for nothing, and goes */
		else if (!r)
			count_records(s, &s->segments[i]);
		if (!r && !s->segments[i].live)
			remove_segment(s, i);
		else
			i++;
	}
	buf_reset(&s->loaded);
	return r;
}

static int lock_directory(const struct spool_options *o, struct spool *s, struct err *e)
{
	if (mkdir(o->dir, 0700) < 0 && errno != EEXIST)
		return err_set(e, -errno, "can't make the spool %.200s: %s", o->dir,
			       strerror(errno));
	s->dir_fd = open(o->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (s->dir_fd < 0)
		return err_set(e, -errno, "can't open the spool %.200s: %s", o->dir,
			       strerror(errno));
	if (flock(s->dir_fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(e, -EBUSY, "the spool %.200s is used by another process, or by another "
					  "sink with the same address", o->dir);
	return 0;
}

int spool_open(const struct spool_options *o, struct spool **ret, struct err *e)
{
	cleanup(spool_cleanup) struct spool *s = NULL;
	int r;

	if (o->max_bytes < SPOOL_MIN_BYTES)
		return err_set(e, -EINVAL, "a spool has at least %d bytes", SPOOL_MIN_BYTES);
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(e, -ENOMEM, "out of memory");
	s->dir_fd = s->write_fd = -1;
	s->max_bytes = o->max_bytes;
	s->max_age_ns = o->max_age_ns;
	s->segment_bytes = MIN(o->max_bytes / 8, SEGMENT_MAX_BYTES);
	s->loaded = (struct buf)BUF_INIT(SEGMENT_MAX_BYTES + SPOOL_HEADER + ITEM_MAX_BYTES);
	r = lock_directory(o, s, e);
	if (r)
		return r;
	r = scan_directory(s);
	if (r)
		return err_set(e, r, "can't read the spool %.200s: %s", o->dir, strerror(-r));
	*ret = take(s);
	return 0;
}

void spool_close(struct spool *s)
{
	if (!s)
		return;
	seal(s);
	if (s->dir_fd >= 0)
		close(s->dir_fd);
	free(s->segments);
	free(s->held);
	free(s->released);
	buf_free(&s->loaded);
	free(s);
}

struct spool_stats spool_get_stats(const struct spool *s)
{
	return s->stats;
}

/* ---- appending ---- */

static void make_room(struct spool *s, size_t n)
{
	while (s->n && s->stats.bytes + n > s->max_bytes) {
		s->stats.evicted += s->segments[0].live - held_of(s, s->segments[0].id);
		remove_segment(s, 0);
	}
}

/* Opens a new segment unless the last one takes more. */
static int writable(struct spool *s)
{
	int r, fd;

	if (s->write_fd >= 0 && s->segments[s->n - 1].bytes < s->segment_bytes)
		return 0;
	seal(s);
	r = array_grow(&s->segments, &s->cap, s->n + 1, sizeof(*s->segments));
	if (r)
		return r;
	fd = open_segment(s, s->next_id, O_WRONLY | O_CREAT | O_EXCL | O_APPEND);
	if (fd < 0)
		return fd;
	s->write_fd = fd;
	s->segments[s->n++] = (struct segment){ .id = s->next_id++ };
	return 0;
}

static int encode_record(const struct item *it, struct buf *out)
{
	struct header h = { .state = SPOOL_LIVE };

	memcpy(h.magic, magic, sizeof(magic));
	buf_bytes(out, &h, sizeof(h));
	item_encode(it, out);
	if (out->err)
		return out->err;
	h.len = htole32((uint32_t)(out->len - sizeof(h)));
	h.put_nanos = (int64_t)htole64((uint64_t)it->put_nanos);
	h.crc = htole32(record_crc(&h, out->data + sizeof(h), out->len - sizeof(h)));
	memcpy(out->data, &h, sizeof(h));
	return 0;
}

int spool_append(struct spool *s, const struct item *it, bool hold, struct spool_pos *ret)
{
	cleanup(buf_cleanup) struct buf rec = BUF_INIT(ITEM_MAX_BYTES + SPOOL_HEADER);
	struct segment *seg;
	int r = encode_record(it, &rec);

	if (!r && rec.len > s->max_bytes)
		r = -E2BIG;
	if (!r && hold)
		r = reserve(s);
	if (r)
		return r;
	make_room(s, rec.len);
	r = writable(s);
	if (r)
		return r;
	seg = &s->segments[s->n - 1];
	r = write_all(s->write_fd, rec.data, rec.len);
	if (r) {
		if (ftruncate(s->write_fd, (off_t)seg->bytes) < 0)
			seal(s);	/* its torn end is skipped; the next goes elsewhere */
		return r;
	}
	*ret = (struct spool_pos){ .segment = seg->id, .offset = seg->bytes };
	seg->bytes += rec.len;
	seg->live++;
	s->stats.bytes += rec.len;
	s->stats.items++;
	if (hold)
		s->held[s->nheld++] = *ret;
	return 0;
}

/* ---- reading ---- */

static size_t find_pos(const struct spool_pos *v, size_t n, uint64_t segment, uint64_t offset)
{
	size_t i = 0;

	while (i < n && (v[i].segment != segment || v[i].offset != offset))
		i++;
	return i;
}

static bool is_known(const struct spool *s, uint64_t segment, uint64_t offset)
{
	return find_pos(s->held, s->nheld, segment, offset) < s->nheld ||
	       find_pos(s->released, s->nreleased, segment, offset) < s->nreleased;
}

static void drop_live(struct spool *s, struct segment *seg)
{
	seg->live--;
	s->stats.items--;
}

static void remove_if_delivered(struct spool *s, uint64_t id)
{
	struct segment *seg = find_segment(s, id);

	/* the one that is being written to has a rest to come */
	if (seg && !seg->live && !(s->write_fd >= 0 && seg == &s->segments[s->n - 1]))
		remove_segment(s, (size_t)(seg - s->segments));
}

/* At the end of a sealed segment: what is live but nowhere is damaged. */
static void leave_segment(struct spool *s, struct segment *seg)
{
	uint64_t known = held_of(s, seg->id);

	for (size_t i = 0; i < s->nreleased; i++)
		known += s->released[i].segment == seg->id;
	for (; seg->live > known; s->stats.torn++)
		drop_live(s, seg);
	remove_if_delivered(s, seg->id);
}

static struct segment *first_at_or_after(struct spool *s, uint64_t id)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->segments[i].id >= id)
			return &s->segments[i];
	return NULL;
}

/* Makes `loaded` hold what is unread; NULL in *ret_seg: everything is read. */
static int next_segment(struct spool *s, struct segment **ret_seg)
{
	struct segment *seg;
	int r;

	for (;;) {
		seg = first_at_or_after(s, s->read_id);
		*ret_seg = seg;
		if (!seg) {
			buf_free(&s->loaded);
			return 0;
		}
		if (seg->id != s->read_id) {
			s->read_id = seg->id;
			s->read_offset = 0;
			buf_reset(&s->loaded);
		}
		if (s->read_offset < s->loaded.len)
			return 0;
		if (s->read_offset < seg->bytes) {
			r = load(s, seg);
			if (r || s->read_offset < s->loaded.len)
				return r;
		}
		if (seg == &s->segments[s->n - 1] && s->write_fd >= 0) {
			buf_free(&s->loaded);
			*ret_seg = NULL;
			return 0;
		}
		s->read_id++;
		s->read_offset = 0;
		buf_free(&s->loaded);
		leave_segment(s, seg);
	}
}

static void mark_done(struct spool *s, const struct spool_pos *pos)
{
	cleanup(fd_cleanup) int fd = open_segment(s, pos->segment, O_WRONLY);
	const unsigned char done = SPOOL_DONE;

	if (fd >= 0)
		(void)!pwrite(fd, &done, 1, (off_t)(pos->offset + offsetof(struct header, state)));
}

/* Gives a record to the caller, or drops it if it is too old or no item. -EAGAIN: dropped. */
static int hand_over(struct spool *s, const unsigned char *payload, size_t n, struct segment *seg,
		     const struct spool_pos *pos, int64_t now_ns, struct item **ret)
{
	struct item *it;
	int r = reserve(s);

	if (!r)
		r = item_decode(payload, n, &it);
	if (r == -ENOMEM)
		return r;
	if (!r && s->max_age_ns && now_ns - it->put_nanos > (int64_t)s->max_age_ns) {
		s->stats.expired++;
		item_unref(it);
		r = -EAGAIN;
	} else if (r) {
		s->stats.torn++;
		r = -EAGAIN;
	}
	if (r) {
		mark_done(s, pos);
		drop_live(s, seg);
		remove_if_delivered(s, pos->segment);
		return r;
	}
	s->held[s->nheld++] = *pos;
	*ret = it;
	return 0;
}

static int next_unread(struct spool *s, int64_t now_ns, struct item **ret, struct spool_pos *ret_pos)
{
	struct spool_record rec;
	struct segment *seg;
	uint64_t torn = 0;	/* counted in leave_segment */
	int r;

	for (;;) {
		r = next_segment(s, &seg);
		if (r || !seg)
			return r ? r : -ENOENT;
		if (!spool_scan(loaded_bytes(s), s->loaded.len, &s->read_offset, &rec, &torn))
			continue;
		if (rec.state != SPOOL_LIVE || is_known(s, seg->id, rec.offset))
			continue;
		*ret_pos = (struct spool_pos){ .segment = seg->id, .offset = rec.offset };
		r = hand_over(s, rec.payload, rec.len, seg, ret_pos, now_ns, ret);
		if (r == -ENOMEM)
			s->read_offset = rec.offset;
		if (r != -EAGAIN)
			return r;
	}
}

/* Reads one record where it lies: those that come back are few. */
static int read_at(struct spool *s, const struct spool_pos *pos, struct buf *out)
{
	cleanup(fd_cleanup) int fd = open_segment(s, pos->segment, O_RDONLY);
	struct spool_record rec;
	struct header h;
	size_t len;
	char *bytes;
	ssize_t n;

	if (fd < 0 || pread(fd, &h, sizeof(h), (off_t)pos->offset) != sizeof(h))
		return -EIO;
	len = le32toh(h.len);
	if (len > ITEM_MAX_BYTES)
		return -EIO;
	bytes = malloc(sizeof(h) + len);
	if (!bytes)
		return -ENOMEM;
	n = pread(fd, bytes, sizeof(h) + len, (off_t)pos->offset);
	if (n > 0)
		buf_bytes(out, bytes, (size_t)n);
	free(bytes);
	if (out->err)
		return out->err;
	return read_record((const unsigned char *)out->data, out->len, &rec) ? 0 : -EIO;
}

static int next_released(struct spool *s, int64_t now_ns, struct item **ret,
			 struct spool_pos *ret_pos)
{
	int r = -ENOENT;

	while (s->nreleased) {
		cleanup(buf_cleanup) struct buf rec = BUF_INIT(ITEM_MAX_BYTES + SPOOL_HEADER);
		struct spool_pos pos = s->released[0];
		struct segment *seg = find_segment(s, pos.segment);

		r = read_at(s, &pos, &rec);
		if (r == -ENOMEM)
			return r;
		memmove(s->released, s->released + 1, --s->nreleased * sizeof(*s->released));
		if (r) {
			s->stats.torn++;
			drop_live(s, seg);
			remove_if_delivered(s, pos.segment);
			r = -ENOENT;
			continue;
		}
		*ret_pos = pos;
		r = hand_over(s, (unsigned char *)rec.data + SPOOL_HEADER, rec.len - SPOOL_HEADER,
			      seg, &pos, now_ns, ret);
		if (r != -EAGAIN)
			return r;
		r = -ENOENT;
	}
	return r;
}

int spool_next(struct spool *s, int64_t now_ns, struct item **ret, struct spool_pos *ret_pos)
{
	int r;

	/* By turns: one that fails again and again must not keep the others from being tried. */
	s->released_last = !s->released_last;
	r = s->released_last ? next_released(s, now_ns, ret, ret_pos)
			     : next_unread(s, now_ns, ret, ret_pos);
	if (r != -ENOENT)
		return r;
	return s->released_last ? next_unread(s, now_ns, ret, ret_pos)
				: next_released(s, now_ns, ret, ret_pos);
}

/* ---- marking ---- */

/* False: nobody holds it. Its segment may be gone all the same: *ret_seg is NULL then. */
static bool unhold(struct spool *s, const struct spool_pos *pos, struct segment **ret_seg)
{
	size_t i = find_pos(s->held, s->nheld, pos->segment, pos->offset);

	if (i == s->nheld)
		return false;
	s->held[i] = s->held[--s->nheld];
	*ret_seg = find_segment(s, pos->segment);
	if (!*ret_seg)
		s->stats.items--;
	return true;
}

void spool_done(struct spool *s, const struct spool_pos *pos)
{
	struct segment *seg;

	if (!unhold(s, pos, &seg) || !seg)
		return;
	mark_done(s, pos);
	drop_live(s, seg);
	remove_if_delivered(s, pos->segment);
}

void spool_release(struct spool *s, const struct spool_pos *pos)
{
	bool unread = pos->segment > s->read_id ||
		      (pos->segment == s->read_id && pos->offset >= s->read_offset);
	struct segment *seg;

	if (!unhold(s, pos, &seg))
		return;
	if (!seg)
		s->stats.evicted++;
	else if (!unread)
		s->released[s->nreleased++] = *pos;
}
