/* pprof_read.c - the reading half of pprof.h.
 *
 * A tree of everything, as the generated code would build it, costs a hostile file two bytes for
 * each hundred of ours, and messages refer to others that stand later in the file. So only the
 * outermost level is walked by hand, once for each kind of message and in the order of reference:
 * strings, header, mappings, functions, locations, samples. Each inner message is decoded by the
 * generated code, within a budget, and goes straight into the profile. */
#include "profile/pprof.h"

#include <fcntl.h>
#include <inttypes.h>
#include <zlib.h>

#include "profile.pb-c.h"

enum {	/* fields of Profile */
	F_SAMPLE = 2,
	F_MAPPING = 3,
	F_LOCATION = 4,
	F_FUNCTION = 5,
	F_STRING = 6,
};

/* 64-bit ids of the file to ours. */
struct ids {
	const char *what;
	struct map map;
	uint32_t *ours;
	size_t cap;
};

struct reader {
	const uint8_t *data;
	size_t n;
	struct profile *p;
	struct err *e;
	uint32_t *strings;	/* index in the file to ours */
	size_t nstrings, strings_cap;
	struct ids mappings, functions, locations;
	ProtobufCAllocator allocator;
	size_t budget;		/* bytes that the message at hand may still take */
	bool over_budget;
	uint32_t *stack;	/* used again for each message, as are the next two */
	struct profile_label *labels;
	struct profile_line *lines;
	size_t stack_cap, labels_cap, lines_cap;
};

static void reader_release(struct reader *r)
{
	free(r->strings);
	free(r->stack);
	free(r->labels);
	free(r->lines);
	map_free(&r->mappings.map);
	map_free(&r->functions.map);
	map_free(&r->locations.map);
	free(r->mappings.ours);
	free(r->functions.ours);
	free(r->locations.ours);
	profile_free(r->p);
}

/* ---- the wire format (Protocol Buffers, Encoding) ---- */

struct field {
	uint32_t number, wire;
	size_t start, end;	/* the whole field, key included */
	const uint8_t *data;	/* of a length-delimited one */
	size_t len;
};

static bool get_varint(const struct reader *r, size_t *pos, uint64_t *ret)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 64 && *pos < r->n; shift += 7) {
		const uint8_t byte = r->data[(*pos)++];

		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = v;
			return true;
		}
	}
	return false;
}

/* The field at f->end. 1, 0 at the end of the data, or -EBADMSG. */
static int next_field(const struct reader *r, struct field *f)
{
	size_t pos = f->start = f->end;
	uint64_t key, len = 0;

	if (pos == r->n)
		return 0;
	if (!get_varint(r, &pos, &key) || !(key >> 3) || key >> 3 > (1 << 29) - 1)
		return err_set(r->e, -EBADMSG, "byte %zu: no field starts here", f->start);
	f->number = (uint32_t)(key >> 3);
	f->wire = key & 7;
	switch (f->wire) {
	case 0:
		if (!get_varint(r, &pos, &len))
			return err_set(r->e, -EBADMSG, "byte %zu: bad number", f->start);
		len = 0;
		break;
	case 1:
		len = 8;
		break;
	case 2:
		if (!get_varint(r, &pos, &len))
			return err_set(r->e, -EBADMSG, "byte %zu: bad length", f->start);
		break;
	case 5:
		len = 4;
		break;
	default:
		return err_set(r->e, -EBADMSG, "byte %zu: unknown wire type %" PRIu32, f->start,
			       f->wire);
	}
	if (len > r->n - pos)
		return err_set(r->e, -EBADMSG, "byte %zu: a field ends beyond the data", f->start);
	f->data = r->data + pos;
	f->len = (size_t)len;
	f->end = pos + f->len;
	return 1;
}

/* Calls fn for every field of that number. n counts them from 1. */
static int each(struct reader *r, uint32_t number,
		int (*fn)(struct reader *r, const struct field *f, size_t n))
{
	struct field f = { 0 };
	size_t n = 0;
	int err;

	while ((err = next_field(r, &f)) > 0) {
		if (f.number != number)
			continue;
		if (f.wire != 2)
			return err_set(r->e, -EBADMSG, "byte %zu: field %" PRIu32
				       " is not a message", f.start, number);
		err = fn(r, &f, ++n);
		if (err)
			return err;
	}
	return err;
}

static void *budget_alloc(void *reader, size_t n)
{
	struct reader *r = reader;

	if (n > r->budget) {
		r->over_budget = true;
		return NULL;
	}
	r->budget -= n;
	return malloc(n);
}

static void budget_free(void *reader maybe_unused, void *p)
{
	free(p);
}

/* Decodes one message; the caller frees it by protobuf_c_message_free_unpacked(). */
static int unpack(struct reader *r, const ProtobufCMessageDescriptor *type, const uint8_t *data,
		  size_t len, size_t start, const char *what, size_t n, void *ret)
{
	ProtobufCMessage *m;

	r->budget = PPROF_MAX_MESSAGE;
	r->over_budget = false;
	m = protobuf_c_message_unpack(type, &r->allocator, len, data);
	if (!m && r->over_budget)
		return err_set(r->e, -E2BIG, "%s %zu takes more than %zu bytes", what, n,
			       PPROF_MAX_MESSAGE);
	if (!m)
		return err_set(r->e, -EBADMSG, "byte %zu: %s %zu is malformed", start, what, n);
	memcpy(ret, &m, sizeof(m));
	return 0;
}

static void release(struct reader *r, void *message)
{
	protobuf_c_message_free_unpacked(message, &r->allocator);
}

/* ---- ids and strings ---- */

static int add_id(struct reader *r, struct ids *ids, uint64_t id, uint32_t ours, size_t n)
{
	uint32_t at;
	bool added;
	int err;

	if (!id)
		return err_set(r->e, -EBADMSG, "%s %zu has no id", ids->what, n);
	err = map_put(&ids->map, &id, &at, &added);
	if (!err && !added)
		return err_set(r->e, -EBADMSG, "%s %zu: id %" PRIu64 " is taken already",
			       ids->what, n, id);
	if (!err)
		err = array_grow(&ids->ours, &ids->cap, ids->map.n, sizeof(*ids->ours));
	if (!err)
		ids->ours[at] = ours;
	return err;
}

/* Our id, or 0. Most writers number from 1 in order: the first look is there. */
static uint32_t find_id(const struct ids *ids, uint64_t id)
{
	uint32_t at;

	if (id - 1 < ids->map.n) {
		const uint64_t *key = map_key(&ids->map, (uint32_t)(id - 1));

		if (*key == id)
			return ids->ours[id - 1];
	}
	at = map_find(&ids->map, &id);
	return at == MAP_NONE ? 0 : ids->ours[at];
}

static int get_string(struct reader *r, int64_t i, const char *what, size_t n, uint32_t *ret)
{
	if (i < 0 || (uint64_t)i >= r->nstrings)
		return err_set(r->e, -EBADMSG, "%s %zu: string %" PRId64 " doesn't exist, the "
			       "table has %zu", what, n, i, r->nstrings);
	*ret = r->strings[i];
	return 0;
}

static int read_string(struct reader *r, const struct field *f, size_t n)
{
	int err = array_grow(&r->strings, &r->strings_cap, n, sizeof(*r->strings));

	if (n == 1 && f->len)
		return err_set(r->e, -EBADMSG, "the first string is not empty");
	if (!err)
		err = profile_string_n(r->p, (const char *)f->data, f->len, &r->strings[n - 1]);
	if (!err)
		r->nstrings = n;
	return err;
}

/* ---- messages ---- */

static int set_header(struct reader *r, const Perftools__Profiles__Profile *h)
{
	struct profile *p = r->p;
	struct profile_value_type vt = { 0 };
	int err = 0;

	for (size_t i = 0; !err && i < h->n_sample_type; i++) {
		err = get_string(r, h->sample_type[i]->type, "sample type", i + 1, &vt.type);
		if (!err)
			err = get_string(r, h->sample_type[i]->unit, "sample type", i + 1,
					 &vt.unit);
		if (!err)
			err = profile_sample_type_put(p, &vt);
	}
	if (!err && h->period_type)
		err = get_string(r, h->period_type->type, "period type", 1, &p->period_type.type);
	if (!err && h->period_type)
		err = get_string(r, h->period_type->unit, "period type", 1, &p->period_type.unit);
	for (size_t i = 0; !err && i < h->n_comment; i++) {
		uint32_t id = 0;

		err = get_string(r, h->comment[i], "comment", i + 1, &id);
		if (!err)
			err = profile_comment_put(p, id);
	}
	if (!err)
		err = get_string(r, h->default_sample_type, "default sample type", 1,
				 &p->default_sample_type);
	if (!err)
		err = get_string(r, h->drop_frames, "drop_frames", 1, &p->drop_frames);
	if (!err)
		err = get_string(r, h->keep_frames, "keep_frames", 1, &p->keep_frames);
	if (!err)
		err = get_string(r, h->doc_url, "doc_url", 1, &p->doc_url);
	p->time_nanos = h->time_nanos;
	p->duration_nanos = h->duration_nanos;
	p->period = h->period;
	return err;
}

/* The header is all the fields that the other passes leave over. */
static int read_header(struct reader *r)
{
	cleanup(buf_cleanup) struct buf rest = BUF_INIT(PPROF_MAX_MESSAGE);
	Perftools__Profiles__Profile *h = NULL;
	struct field f = { 0 };
	int err;

	while ((err = next_field(r, &f)) > 0)
		if (f.number < F_SAMPLE || f.number > F_STRING)
			buf_bytes(&rest, r->data + f.start, f.end - f.start);
	if (!err)
		err = rest.err;
	if (!err)
		err = unpack(r, &perftools__profiles__profile__descriptor,
			     (const uint8_t *)rest.data, rest.len, 0, "header", 1, &h);
	if (err)
		return err;
	err = set_header(r, h);
	release(r, h);
	return err;
}

static int read_mapping(struct reader *r, const struct field *f, size_t n)
{
	Perftools__Profiles__Mapping *m = NULL;
	struct profile_mapping ours = { 0 };
	uint32_t id;
	int err = unpack(r, &perftools__profiles__mapping__descriptor, f->data, f->len, f->start,
			 "mapping", n, &m);

	if (err)
		return err;
	ours.start = m->memory_start;
	ours.limit = m->memory_limit;
	ours.offset = m->file_offset;
	ours.has = (m->has_functions ? PROFILE_HAS_FUNCTIONS : 0u) |
		   (m->has_filenames ? PROFILE_HAS_FILENAMES : 0u) |
		   (m->has_line_numbers ? PROFILE_HAS_LINE_NUMBERS : 0u) |
		   (m->has_inline_frames ? PROFILE_HAS_INLINE_FRAMES : 0u);
	err = get_string(r, m->filename, "mapping", n, &ours.file);
	if (!err)
		err = get_string(r, m->build_id, "mapping", n, &ours.build_id);
	if (!err)
		err = profile_mapping(r->p, &ours, &id);
	if (!err)
		err = add_id(r, &r->mappings, m->id, id, n);
	release(r, m);
	return err;
}

static int read_function(struct reader *r, const struct field *f, size_t n)
{
	Perftools__Profiles__Function *fn = NULL;
	struct profile_function ours = { 0 };
	uint32_t id;
	int err = unpack(r, &perftools__profiles__function__descriptor, f->data, f->len, f->start,
			 "function", n, &fn);

	if (err)
		return err;
	ours.start_line = fn->start_line;
	err = get_string(r, fn->name, "function", n, &ours.name);
	if (!err)
		err = get_string(r, fn->system_name, "function", n, &ours.system_name);
	if (!err)
		err = get_string(r, fn->filename, "function", n, &ours.file);
	if (!err)
		err = profile_function(r->p, &ours, &id);
	if (!err)
		err = add_id(r, &r->functions, fn->id, id, n);
	release(r, fn);
	return err;
}

static int set_location(struct reader *r, const Perftools__Profiles__Location *l, size_t n)
{
	struct profile_location ours = { .address = l->address, .folded = l->is_folded,
					 .mapping = find_id(&r->mappings, l->mapping_id) };
	uint32_t id;
	int err = array_grow(&r->lines, &r->lines_cap, l->n_line, sizeof(*r->lines));

	for (size_t i = 0; !err && i < l->n_line; i++) {
		const Perftools__Profiles__Line *line = l->line[i];
		const uint32_t function = find_id(&r->functions, line->function_id);

		if (!function)
			return err_set(r->e, -EBADMSG, "location %zu: function id %" PRIu64
				       " doesn't exist", n, line->function_id);
		r->lines[i] = (struct profile_line){
			.line = line->line,
			.function = function,
			.column = (int32_t)MAX(INT32_MIN, MIN(line->column, INT32_MAX)),
		};
	}
	if (!err)
		err = profile_location(r->p, &ours, r->lines, l->n_line, &id);
	return err ? err : add_id(r, &r->locations, l->id, id, n);
}

static int read_location(struct reader *r, const struct field *f, size_t n)
{
	Perftools__Profiles__Location *l = NULL;
	int err = unpack(r, &perftools__profiles__location__descriptor, f->data, f->len, f->start,
			 "location", n, &l);

	if (err)
		return err;
	err = set_location(r, l, n);
	release(r, l);
	return err;
}

static int set_labels(struct reader *r, const Perftools__Profiles__Sample *s, size_t n)
{
	int err = array_grow(&r->labels, &r->labels_cap, s->n_label, sizeof(*r->labels));

	for (size_t i = 0; !err && i < s->n_label; i++) {
		const Perftools__Profiles__Label *l = s->label[i];
		struct profile_label ours = { .num = l->num };

		err = get_string(r, l->key, "sample", n, &ours.key);
		if (!err)
			err = get_string(r, l->str, "sample", n, &ours.str);
		if (!err)
			err = get_string(r, l->num_unit, "sample", n, &ours.unit);
		r->labels[i] = ours;
	}
	return err;
}

static int set_sample(struct reader *r, const Perftools__Profiles__Sample *s, size_t n)
{
	int err;

	if (!r->p->ntypes)
		return err_set(r->e, -EBADMSG, "there are samples but no sample types");
	if (s->n_value != r->p->ntypes)
		return err_set(r->e, -EBADMSG, "sample %zu: %zu values for %zu sample types", n,
			       s->n_value, r->p->ntypes);
	err = array_grow(&r->stack, &r->stack_cap, s->n_location_id, sizeof(*r->stack));
	for (size_t i = 0; !err && i < s->n_location_id; i++) {
		r->stack[i] = find_id(&r->locations, s->location_id[i]);
		if (!r->stack[i])
			return err_set(r->e, -EBADMSG, "sample %zu: location id %" PRIu64
				       " doesn't exist", n, s->location_id[i]);
	}
	if (!err)
		err = set_labels(r, s, n);
	if (err)
		return err;
	return profile_sample(r->p, &(struct profile_stack){ r->stack, s->n_location_id },
			      r->labels, s->n_label, s->value, NULL);
}

static int read_sample(struct reader *r, const struct field *f, size_t n)
{
	Perftools__Profiles__Sample *s = NULL;
	int err = unpack(r, &perftools__profiles__sample__descriptor, f->data, f->len, f->start,
			 "sample", n, &s);

	if (err)
		return err;
	err = set_sample(r, s, n);
	release(r, s);
	return err;
}

static int read_all(struct reader *r)
{
	int err = each(r, F_STRING, read_string);

	if (!err && !r->nstrings)
		return err_set(r->e, -EBADMSG, "there is no string table");
	if (!err)
		err = read_header(r);
	if (!err)
		err = each(r, F_MAPPING, read_mapping);
	if (!err)
		err = each(r, F_FUNCTION, read_function);
	if (!err)
		err = each(r, F_LOCATION, read_location);
	if (!err)
		err = each(r, F_SAMPLE, read_sample);
	return err;
}

static int read_raw(const uint8_t *data, size_t n, struct profile **ret, struct err *e)
{
	cleanup(reader_release) struct reader r = {
		.data = data,
		.n = n,
		.e = e,
		.mappings = { .what = "mapping", .map = MAP_INIT(sizeof(uint64_t)) },
		.functions = { .what = "function", .map = MAP_INIT(sizeof(uint64_t)) },
		.locations = { .what = "location", .map = MAP_INIT(sizeof(uint64_t)) },
		.allocator = { budget_alloc, budget_free, &r },
	};
	int err = profile_new(&r.p);

	if (!err)
		err = read_all(&r);
	if (!err)
		*ret = take(r.p);
	return err;
}

/* ---- gzip ---- */

static bool is_gzip(const uint8_t *d, size_t n)
{
	return n >= 2 && d[0] == 0x1f && d[1] == 0x8b;	/* RFC 1952 section 2.3.1 */
}

/* All members (RFC 1952 section 2.2) of d. */
static int inflate_all(z_stream *z, const uint8_t *d, size_t n, struct buf *out, struct err *e)
{
	uint8_t chunk[65536];
	size_t left = n;
	int r = Z_OK;

	z->next_in = (uint8_t *)(uintptr_t)d;	/* zlib only reads it */
	while (r != Z_STREAM_END || left || z->avail_in) {
		if (!z->avail_in) {
			z->avail_in = (uInt)MIN(left, (size_t)1 << 30);
			left -= z->avail_in;
		}
		if (r == Z_STREAM_END && inflateReset(z) != Z_OK)
			return -ENOMEM;
		z->next_out = chunk;
		z->avail_out = sizeof(chunk);
		r = inflate(z, Z_NO_FLUSH);
		buf_bytes(out, chunk, sizeof(chunk) - z->avail_out);
		if (out->err)
			return out->err;
		if (r == Z_MEM_ERROR)
			return -ENOMEM;
		if (r == Z_BUF_ERROR && !left && !z->avail_in)
			return err_set(e, -EBADMSG, "the gzip data ends early");
		if (r != Z_OK && r != Z_STREAM_END)
			return err_set(e, -EBADMSG, "byte %zu: bad gzip data",
				       n - left - z->avail_in);
	}
	return 0;
}

static int gunzip(const uint8_t *d, size_t n, struct buf *out, struct err *e)
{
	z_stream z = { 0 };
	int r;

	if (inflateInit2(&z, 16 + 15) != Z_OK)	/* gzip framing, any window */
		return -ENOMEM;
	r = inflate_all(&z, d, n, out, e);
	inflateEnd(&z);
	return r;
}

/* A sentence for what has none yet. */
static int explain(struct err *e, int r, size_t max)
{
	if (r == -E2BIG && e && !e->msg[0])
		return err_set(e, r, "larger than %zu bytes, or too many parts", max);
	if (r && e && !e->msg[0])
		return err_set(e, r, "%s", strerror(-r));
	return r;
}

int pprof_read(const void *data, size_t n, size_t max, struct profile **ret, struct err *e)
{
	const size_t limit = max ? max : PPROF_MAX_BYTES;
	cleanup(buf_cleanup) struct buf raw = BUF_INIT(limit);
	struct err none;
	int r;

	if (!e)
		e = &none;
	e->msg[0] = '\0';
	if (!n)
		return err_set(e, -EBADMSG, "empty, not a profile");
	if (!is_gzip(data, n))
		return explain(e, n > limit ? -E2BIG : read_raw(data, n, ret, e), limit);
	r = gunzip(data, n, &raw, e);
	if (!r && !raw.len)
		return err_set(e, -EBADMSG, "empty, not a profile");
	return explain(e, r ? r : read_raw((const uint8_t *)raw.data, raw.len, ret, e), limit);
}

/* ---- files ---- */

static int read_fd(int fd, struct buf *out)
{
	char chunk[65536];
	ssize_t n;

	do {
		n = read(fd, chunk, sizeof(chunk));
		if (n > 0)
			buf_bytes(out, chunk, (size_t)n);
	} while ((n > 0 && !out->err) || (n < 0 && errno == EINTR));
	return n < 0 ? -errno : out->err;
}

int pprof_read_file(const char *path, size_t max, struct profile **ret, struct err *e)
{
	const bool is_stdin = !strcmp(path, "-");
	const char *name = is_stdin ? "standard input" : path;
	const size_t limit = max ? max : PPROF_MAX_BYTES;
	cleanup(buf_cleanup) struct buf bytes = BUF_INIT(limit);
	cleanup(fd_cleanup) int fd = is_stdin ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	struct err why = { "" };
	int r;

	if (!is_stdin && fd < 0)
		r = -errno;
	else
		r = read_fd(is_stdin ? STDIN_FILENO : fd, &bytes);
	r = r ? explain(&why, r, limit) : pprof_read(bytes.data, bytes.len, max, ret, &why);
	if (r)
		return err_set(e, r, "%s: %s%.400s", name,
			       r == -EBADMSG ? "no valid pprof profile: " : "", why.msg);
	return 0;
}
