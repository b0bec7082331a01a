/* pprof.c - the writing half of pprof.h; pprof_read.c is the other.
 *
 * No tree of the whole profile is built: a message may be encoded as several that stand one after
 * another, whose repeated fields add up (Protocol Buffers, Encoding, "Last One Wins"). So each
 * sample, location, ... is packed as a Profile of its own, and passes through deflate at once. */
#include "profile/pprof.h"

#include <zlib.h>

#include "profile.pb-c.h"

struct sink {
	struct buf *out;
	bool gzip;
	z_stream z;
	uint8_t *packed;	/* one message */
	size_t cap;
	int err;
};

static void deflate_into(struct sink *s, const uint8_t *p, size_t n, int flush)
{
	uint8_t chunk[16384];
	int r;

	s->z.next_in = (uint8_t *)(uintptr_t)p;	/* zlib only reads it */
	s->z.avail_in = (uInt)n;
	do {
		s->z.next_out = chunk;
		s->z.avail_out = sizeof(chunk);
		r = deflate(&s->z, flush);
		buf_bytes(s->out, chunk, sizeof(chunk) - s->z.avail_out);
	} while (r == Z_OK && !s->z.avail_out);
}

static void emit(struct sink *s, const Perftools__Profiles__Profile *part)
{
	const size_t n = perftools__profiles__profile__get_packed_size(part);

	if (!s->err)
		s->err = n > UINT_MAX ? -E2BIG : array_grow(&s->packed, &s->cap, n, 1);
	if (s->err)
		return;
	perftools__profiles__profile__pack(part, s->packed);
	if (s->gzip)
		deflate_into(s, s->packed, n, Z_NO_FLUSH);
	else
		buf_bytes(s->out, s->packed, n);
}

static void emit_header(struct sink *s, const struct profile *p)
{
	Perftools__Profiles__Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
	Perftools__Profiles__ValueType period_type = PERFTOOLS__PROFILES__VALUE_TYPE__INIT;

	period_type.type = p->period_type.type;
	period_type.unit = p->period_type.unit;
	if (p->period_type.type || p->period_type.unit)
		part.period_type = &period_type;
	part.period = p->period;
	part.time_nanos = p->time_nanos;
	part.duration_nanos = p->duration_nanos;
	part.default_sample_type = p->default_sample_type;
	part.drop_frames = p->drop_frames;
	part.keep_frames = p->keep_frames;
	part.doc_url = p->doc_url;
	emit(s, &part);

	for (size_t i = 0; i < p->ntypes; i++) {
		Perftools__Profiles__ValueType vt = PERFTOOLS__PROFILES__VALUE_TYPE__INIT;
		Perftools__Profiles__Profile one = PERFTOOLS__PROFILES__PROFILE__INIT;

		vt.type = p->types[i].type;
		vt.unit = p->types[i].unit;
		one.n_sample_type = 1;
		one.sample_type = (Perftools__Profiles__ValueType *[]){ &vt };
		emit(s, &one);
	}
	for (size_t i = 0; i < p->ncomments; i++) {
		Perftools__Profiles__Profile one = PERFTOOLS__PROFILES__PROFILE__INIT;

		one.n_comment = 1;
		one.comment = (int64_t[]){ p->comments[i] };
		emit(s, &one);
	}
}

/* Arrays that grow to the longest sample or location and are used again for each. */
struct scratch {
	uint64_t *ids;
	Perftools__Profiles__Label *labels, **label_ptrs;
	Perftools__Profiles__Line *lines, **line_ptrs;
	size_t ids_cap, labels_cap, label_ptrs_cap, lines_cap, line_ptrs_cap;
};

static void scratch_release(struct scratch *t)
{
	free(t->ids);
	free(t->labels);
	free(t->label_ptrs);
	free(t->lines);
	free(t->line_ptrs);
}

static int emit_sample(struct sink *s, const struct profile *p, struct scratch *t, uint32_t n)
{
	const uint32_t set = profile_labels_id(p, n);
	const size_t depth = profile_depth(p, n), nlabels = profile_label_count(p, set);
	Perftools__Profiles__Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
	Perftools__Profiles__Sample sample = PERFTOOLS__PROFILES__SAMPLE__INIT;
	int r = array_grow(&t->ids, &t->ids_cap, depth, sizeof(*t->ids));

	if (!r)
		r = array_grow(&t->labels, &t->labels_cap, nlabels, sizeof(*t->labels));
	if (!r)
		r = array_grow(&t->label_ptrs, &t->label_ptrs_cap, nlabels,
			       sizeof(*t->label_ptrs));
	if (r)
		return r;
	for (size_t i = 0; i < depth; i++)
		t->ids[i] = profile_frame(p, n, i);
	for (size_t i = 0; i < nlabels; i++) {
		struct profile_label l = profile_label_get(p, set, i);

		t->labels[i] = (Perftools__Profiles__Label)PERFTOOLS__PROFILES__LABEL__INIT;
		t->labels[i].key = l.key;
		t->labels[i].str = l.str;
		t->labels[i].num = l.num;
		t->labels[i].num_unit = l.unit;
		t->label_ptrs[i] = &t->labels[i];
	}
	sample.n_location_id = depth;
	sample.location_id = t->ids;
	sample.n_value = p->ntypes;
	sample.value = (int64_t *)(uintptr_t)profile_values(p, n);	/* packing only reads it */
	sample.n_label = nlabels;
	sample.label = t->label_ptrs;
	part.n_sample = 1;
	part.sample = (Perftools__Profiles__Sample *[]){ &sample };
	emit(s, &part);
	return s->err;
}

static int emit_samples(struct sink *s, const struct profile *p, struct scratch *t)
{
	cleanup(freep_cleanup) uint32_t *order = NULL;
	const uint32_t n = profile_sample_count(p);
	int r = profile_sorted(p, profile_default_type(p), &order);

	for (uint32_t i = 0; !r && i < n; i++)
		r = emit_sample(s, p, t, order[i]);
	return r;
}

/* The main mapping is written first; those before it move up by one. */
static uint32_t written_mapping(uint32_t id, uint32_t main_id)
{
	return id == main_id ? MIN(main_id, 1) : id + (id && id < main_id);
}

static int emit_location(struct sink *s, const struct profile *p, struct scratch *t, uint32_t id)
{
	const struct profile_location l = profile_location_get(p, id);
	const size_t n = profile_line_count(p, id);
	Perftools__Profiles__Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
	Perftools__Profiles__Location loc = PERFTOOLS__PROFILES__LOCATION__INIT;
	int r = array_grow(&t->lines, &t->lines_cap, n, sizeof(*t->lines));

	if (!r)
		r = array_grow(&t->line_ptrs, &t->line_ptrs_cap, n, sizeof(*t->line_ptrs));
	if (r)
		return r;
	for (size_t i = 0; i < n; i++) {
		const struct profile_line line = profile_line_get(p, id, i);

		t->lines[i] = (Perftools__Profiles__Line)PERFTOOLS__PROFILES__LINE__INIT;
		t->lines[i].function_id = line.function;
		t->lines[i].line = line.line;
		t->lines[i].column = line.column;
		t->line_ptrs[i] = &t->lines[i];
	}
	loc.id = id;
	loc.mapping_id = written_mapping(l.mapping, profile_main_mapping(p));
	loc.address = l.address;
	loc.is_folded = l.folded;
	loc.n_line = n;
	loc.line = t->line_ptrs;
	part.n_location = 1;
	part.location = (Perftools__Profiles__Location *[]){ &loc };
	emit(s, &part);
	return s->err;
}

static void emit_mapping(struct sink *s, const struct profile *p, uint32_t id)
{
	const struct profile_mapping m = profile_mapping_get(p, id);
	Perftools__Profiles__Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
	Perftools__Profiles__Mapping out = PERFTOOLS__PROFILES__MAPPING__INIT;

	out.id = written_mapping(id, profile_main_mapping(p));
	out.memory_start = m.start;
	out.memory_limit = m.limit;
	out.file_offset = m.offset;
	out.filename = m.file;
	out.build_id = m.build_id;
	out.has_functions = !!(m.has & PROFILE_HAS_FUNCTIONS);
	out.has_filenames = !!(m.has & PROFILE_HAS_FILENAMES);
	out.has_line_numbers = !!(m.has & PROFILE_HAS_LINE_NUMBERS);
	out.has_inline_frames = !!(m.has & PROFILE_HAS_INLINE_FRAMES);
	part.n_mapping = 1;
	part.mapping = (Perftools__Profiles__Mapping *[]){ &out };
	emit(s, &part);
}

static void emit_mappings(struct sink *s, const struct profile *p)
{
	const uint32_t main_id = profile_main_mapping(p);

	if (main_id)
		emit_mapping(s, p, main_id);
	for (uint32_t id = 1; id <= profile_mapping_count(p); id++)
		if (id != main_id)
			emit_mapping(s, p, id);
}

static void emit_function(struct sink *s, const struct profile *p, uint32_t id)
{
	const struct profile_function f = profile_function_get(p, id);
	Perftools__Profiles__Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
	Perftools__Profiles__Function out = PERFTOOLS__PROFILES__FUNCTION__INIT;

	out.id = id;
	out.name = f.name;
	out.system_name = f.system_name;
	out.filename = f.file;
	out.start_line = f.start_line;
	part.n_function = 1;
	part.function = (Perftools__Profiles__Function *[]){ &out };
	emit(s, &part);
}

static void put_varint(uint8_t *out, size_t *n, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		out[(*n)++] = (uint8_t)(v | 0x80);
	out[(*n)++] = (uint8_t)v;
}

/* By hand, since protobuf-c's strings end at the first NUL and ours need not: string_table is
 * field 6, wire type 2 (Encoding, "Length-Delimited Records"). */
static void emit_string(struct sink *s, const struct profile *p, uint32_t id)
{
	const size_t len = strtab_len(&p->strings, id);
	size_t n = 0;

	if (!s->err)
		s->err = len > UINT_MAX - 16 ? -E2BIG
					     : array_grow(&s->packed, &s->cap, len + 16, 1);
	if (s->err)
		return;
	put_varint(s->packed, &n, 6 << 3 | 2);
	put_varint(s->packed, &n, len);
	memcpy(s->packed + n, profile_str(p, id), len);
	if (s->gzip)
		deflate_into(s, s->packed, n + len, Z_NO_FLUSH);
	else
		buf_bytes(s->out, s->packed, n + len);
}

static int emit_all(struct sink *s, const struct profile *p)
{
	cleanup(scratch_release) struct scratch t = { 0 };
	int r;

	emit_header(s, p);
	r = emit_samples(s, p, &t);
	emit_mappings(s, p);
	for (uint32_t id = 1; !r && id <= profile_location_count(p); id++)
		r = emit_location(s, p, &t, id);
	for (uint32_t id = 1; id <= profile_function_count(p); id++)
		emit_function(s, p, id);
	for (uint32_t id = 0; id < strtab_count(&p->strings); id++)
		emit_string(s, p, id);
	return r ? r : s->err;
}

int pprof_write(const struct profile *p, bool gzip, struct buf *out)
{
	struct sink s = { .out = out, .gzip = gzip };
	int r;

	/* 16 + 15: the largest window, gzip framing; its header carries neither name nor time.
	 * The fastest level: deflate is most of the work here, and the agent does it all day. */
	if (gzip && deflateInit2(&s.z, Z_BEST_SPEED, Z_DEFLATED, 16 + 15, 8,
				 Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	r = emit_all(&s, p);
	if (gzip) {
		deflate_into(&s, NULL, 0, Z_FINISH);
		deflateEnd(&s.z);
	}
	free(s.packed);
	return r ? r : out->err;
}
