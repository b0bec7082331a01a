/* speedscope.c - see speedscope.h. */
#include "profile/speedscope.h"

#include <inttypes.h>

#include "profile/names.h"

struct frame_key {	/* what makes two frames one: the source position, or the location */
	uint32_t function, location;
	int64_t line;
	int64_t column;
};

_Static_assert(sizeof(struct frame_key) == 24, "no padding");

struct thread {
	int64_t total;
	uint32_t name;		/* in names, the order of arrival */
	uint32_t first;		/* its samples in by_thread */
	uint32_t n;
};

struct writer {
	const struct profile *p;
	size_t type;
	struct map frames;
	uint32_t *first_frame;		/* of each location, in location_frames */
	uint32_t *location_frames;	/* innermost first */
	size_t nlocation_frames, location_frames_cap;
	struct strtab names;		/* of threads; 0 is unused */
	uint32_t *set_thread;		/* name of each label set, 0: not asked yet */
	struct thread *threads;
	size_t threads_cap;
	uint32_t *by_thread;		/* sample numbers, those of a thread together */
	struct buf scratch;
};

static void writer_release(struct writer *w)
{
	map_free(&w->frames);
	free(w->first_frame);
	free(w->location_frames);
	strtab_free(&w->names);
	free(w->set_thread);
	free(w->threads);
	free(w->by_thread);
	buf_free(&w->scratch);
}

/* A JSON string (RFC 8259 section 7). The text is valid UTF-8 already. */
static void put_json(struct buf *out, const char *s, size_t n)
{
	size_t done = 0;

	buf_char(out, '"');
	for (size_t i = 0; i < n; i++) {
		const unsigned char c = (unsigned char)s[i];

		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		buf_bytes(out, s + done, i - done);
		if (c < 0x20)
			buf_printf(out, "\\u%04x", c);
		else
			buf_printf(out, "\\%c", c);
		done = i + 1;
	}
	buf_bytes(out, s + done, n - done);
	buf_char(out, '"');
}

/* ---- frames ---- */

static int prepare_location(struct writer *w, uint32_t id)
{
	const size_t lines = profile_line_count(w->p, id), n = name_frame_count(w->p, id);
	int r = array_grow(&w->location_frames, &w->location_frames_cap,
			   w->nlocation_frames + n, sizeof(*w->location_frames));

	w->first_frame[id] = (uint32_t)w->nlocation_frames;
	for (size_t i = 0; !r && i < n; i++) {
		struct frame_key key = { 0 };

		if (i < lines) {
			const struct profile_line line = profile_line_get(w->p, id, i);
			const struct profile_function f =
				profile_function_get(w->p, line.function);

			key.function = line.function;
			key.line = line.line;
			key.column = line.column;
			if (!f.name && !f.system_name)	/* named by its address */
				key.location = id;
		} else {
			key.location = id;
		}
		r = map_put(&w->frames, &key, &w->location_frames[w->nlocation_frames], NULL);
		w->nlocation_frames++;
	}
	w->first_frame[id + 1] = (uint32_t)w->nlocation_frames;
	return r;
}

/* Which of its location's frames a frame is doesn't matter: all that share a key have one name. */
static void put_frame(struct writer *w, const struct frame_key *key, struct buf *out)
{
	struct profile_function f = { 0 };

	buf_reset(&w->scratch);
	if (key->function)
		f = profile_function_get(w->p, key->function);
	if (f.name || f.system_name) {
		const uint32_t name = f.name ? f.name : f.system_name;

		buf_bytes(&w->scratch, profile_str(w->p, name),
			  strtab_len(&w->p->strings, name));
	} else {
		/* Such a frame has no name whichever line it is: each yields module+address. */
		name_frame(w->p, key->location, SIZE_MAX, &w->scratch);
	}
	buf_str(out, "{\"name\":");
	put_json(out, w->scratch.data, w->scratch.len);
	if (f.file) {
		buf_str(out, ",\"file\":");
		put_json(out, profile_str(w->p, f.file), strtab_len(&w->p->strings, f.file));
	}
	if (key->line > 0)
		buf_printf(out, ",\"line\":%" PRId64, key->line);
	if (key->column > 0)
		buf_printf(out, ",\"col\":%" PRId64, key->column);
	buf_char(out, '}');
}

/* ---- threads ---- */

static int thread_of(struct writer *w, const struct name_keys *keys, uint32_t sample,
		     uint32_t *ret)
{
	const uint32_t set = profile_labels_id(w->p, sample);
	int r = 0;

	if (!w->set_thread[set]) {
		buf_reset(&w->scratch);
		name_thread(w->p, keys, set, &w->scratch);
		r = w->scratch.err;
		if (!r && !w->scratch.len)
			buf_str(&w->scratch, "[unknown]");
		if (!r)
			r = strtab_put(&w->names, w->scratch.data, w->scratch.len,
				       &w->set_thread[set]);
	}
	if (!r)
		*ret = w->set_thread[set];
	return r;
}

/* Sorts samples by thread, each thread's heaviest first: counts, then places (counting sort). */
static int group(struct writer *w, const uint32_t *order)
{
	const struct name_keys keys = name_keys(w->p);
	const uint32_t n = profile_sample_count(w->p);
	uint32_t first = 0;
	int r = 0;

	for (uint32_t i = 0; !r && i < n; i++) {
		const int64_t value = profile_values(w->p, order[i])[w->type];
		const size_t had = strtab_count(&w->names);
		uint32_t t = 0;

		r = thread_of(w, &keys, order[i], &t);
		if (!r)
			r = array_grow(&w->threads, &w->threads_cap, (size_t)t + 1,
				       sizeof(*w->threads));
		if (r)
			return r;
		if (t >= had)
			w->threads[t] = (struct thread){ .name = t };
		if (value > 0) {
			w->threads[t].total = profile_add(w->threads[t].total, value);
			w->threads[t].n++;
		}
	}
	for (uint32_t t = 1; t < strtab_count(&w->names); t++) {
		w->threads[t].first = first;
		first += w->threads[t].n;
		w->threads[t].n = 0;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct thread *t = &w->threads[w->set_thread[profile_labels_id(w->p, order[i])]];

		if (profile_values(w->p, order[i])[w->type] > 0)
			w->by_thread[t->first + t->n++] = order[i];
	}
	return 0;
}

static int heavier_first(const void *pa, const void *pb)
{
	const struct thread *a = pa, *b = pb;

	if (a->total != b->total)
		return a->total < b->total ? 1 : -1;
	return a->name < b->name ? -1 : a->name > b->name;
}

/* ---- text ---- */

static const char *unit(const struct writer *w)
{
	static const char *const known[] = { "nanoseconds", "microseconds", "milliseconds",
					     "seconds", "bytes" };

	if (!w->p->ntypes)
		return "none";
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(profile_str(w->p, w->p->types[w->type].unit), known[i]))
			return known[i];
	return "none";
}

static void put_stack(const struct writer *w, uint32_t sample, struct buf *out)
{
	const char *comma = "";

	buf_char(out, '[');
	for (size_t i = profile_depth(w->p, sample); i-- > 0;) {
		const uint32_t loc = profile_frame(w->p, sample, i);

		for (uint32_t f = w->first_frame[loc + 1]; f-- > w->first_frame[loc];) {
			buf_printf(out, "%s%" PRIu32, comma, w->location_frames[f]);
			comma = ",";
		}
	}
	buf_char(out, ']');
}

static void put_thread(const struct writer *w, const struct thread *t, struct buf *out)
{
	buf_str(out, "{\"type\":\"sampled\",\"name\":");
	put_json(out, strtab_get(&w->names, t->name), strtab_len(&w->names, t->name));
	buf_printf(out, ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRId64
		   ",\"samples\":[", unit(w), t->total);
	for (uint32_t i = 0; i < t->n; i++) {
		buf_str(out, i ? ",\n" : "");
		put_stack(w, w->by_thread[t->first + i], out);
	}
	buf_str(out, "],\"weights\":[");
	for (uint32_t i = 0; i < t->n; i++)
		buf_printf(out, "%s%" PRId64, i ? "," : "",
			   profile_values(w->p, w->by_thread[t->first + i])[w->type]);
	buf_str(out, "]}");
}

static void put_all(struct writer *w, struct buf *out)
{
	const struct thread none = { 0 };
	bool any = false;

	buf_str(out, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
		     "\"exporter\":\"wick\",\"activeProfileIndex\":0,\n\"shared\":{\"frames\":[");
	for (size_t i = 0; i < w->frames.n; i++) {
		buf_str(out, i ? ",\n" : "\n");
		put_frame(w, map_key(&w->frames, (uint32_t)i), out);
	}
	buf_str(out, "]},\n\"profiles\":[");
	for (uint32_t t = 1; t < strtab_count(&w->names); t++) {
		if (!w->threads[t].n)
			continue;
		buf_str(out, any ? ",\n" : "\n");
		put_thread(w, &w->threads[t], out);
		any = true;
	}
	if (!any)
		put_thread(w, &none, out);
	buf_str(out, "]}\n");
}

int speedscope_write(const struct profile *p, struct buf *out)
{
	const size_t nloc = profile_location_count(p);
	cleanup(freep_cleanup) uint32_t *order = NULL;
	cleanup(writer_release) struct writer w = {
		.p = p,
		.type = profile_default_type(p),
		.frames = MAP_INIT(sizeof(struct frame_key)),
		.first_frame = calloc(nloc + 2, sizeof(uint32_t)),
		.names = STRTAB_INIT,
		.set_thread = calloc(profile_labels_count(p), sizeof(uint32_t)),
		.by_thread = calloc((size_t)profile_sample_count(p) + 1, sizeof(uint32_t)),
		.scratch = BUF_INIT(SIZE_MAX / 4),
	};
	int r = w.first_frame && w.set_thread && w.by_thread ? 0 : -ENOMEM;

	if (!r)
		r = profile_sorted(p, w.type, &order);
	for (uint32_t id = 1; !r && id <= nloc; id++)
		r = prepare_location(&w, id);
	if (!r && order)
		r = group(&w, order);
	if (r)
		return r;
	if (strtab_count(&w.names) > 1)
		qsort(w.threads + 1, strtab_count(&w.names) - 1, sizeof(*w.threads),
		      heavier_first);
	put_all(&w, out);
	return w.scratch.err ? w.scratch.err : out->err;
}
