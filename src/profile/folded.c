/* folded.c - see folded.h. Different samples may read the same (two processes of one name, two
 * addresses in a function), so lines are interned before they are written. */
#include "profile/folded.h"

#include <inttypes.h>

#include "profile/names.h"

struct folder {
	const struct profile *p;
	uint32_t comm;			/* key string */
	struct strtab texts;		/* of locations, then of whole lines */
	uint32_t *location_text;	/* of each location: its frames, root to leaf */
	struct strtab lines;
	int64_t *sums;			/* of each line */
	size_t sums_cap;
	struct buf scratch, line;
};

static void folder_release(struct folder *f)
{
	strtab_free(&f->texts);
	strtab_free(&f->lines);
	free(f->location_text);
	free(f->sums);
	buf_free(&f->scratch);
	buf_free(&f->line);
}

/* Appends what is in scratch, as a frame. */
static void put_frame(struct folder *f)
{
	if (f->line.len)
		buf_char(&f->line, ';');
	for (size_t i = 0; i < f->scratch.len; i++)
		if (f->scratch.data[i] == ';')
			f->scratch.data[i] = ':';
	if (f->scratch.len)
		name_clean(&f->line, f->scratch.data, f->scratch.len);
	else
		buf_str(&f->line, "[unknown]");
}

static int prepare_location(struct folder *f, uint32_t id)
{
	const char *suffix = name_is_kernel(f->p, id) ? "_[k]" : "";

	buf_reset(&f->line);
	for (size_t i = name_frame_count(f->p, id); i-- > 0;) {
		buf_reset(&f->scratch);
		name_frame(f->p, id, i, &f->scratch);
		put_frame(f);
		buf_str(&f->line, suffix);
	}
	if (f->scratch.err || f->line.err)
		return f->scratch.err ? f->scratch.err : f->line.err;
	return strtab_put(&f->texts, f->line.data, f->line.len, &f->location_text[id]);
}

static int add_sample(struct folder *f, uint32_t n, int64_t value)
{
	const size_t depth = profile_depth(f->p, n), had = strtab_count(&f->lines);
	struct profile_label comm;
	uint32_t line;
	int r;

	buf_reset(&f->line);
	buf_reset(&f->scratch);
	if (profile_label_find(f->p, profile_labels_id(f->p, n), f->comm, &comm)) {
		name_label(f->p, &comm, &f->scratch);
		put_frame(f);
	}
	for (size_t i = depth; i-- > 0;) {
		const uint32_t text = f->location_text[profile_frame(f->p, n, i)];

		if (f->line.len)
			buf_char(&f->line, ';');
		buf_bytes(&f->line, strtab_get(&f->texts, text), strtab_len(&f->texts, text));
	}
	if (!depth)
		buf_str(&f->line, f->line.len ? ";[unknown]" : "[unknown]");
	if (f->line.err)
		return f->line.err;
	r = strtab_put(&f->lines, f->line.data, f->line.len, &line);
	if (!r)
		r = array_grow(&f->sums, &f->sums_cap, strtab_count(&f->lines), sizeof(*f->sums));
	if (r)
		return r;
	f->sums[line] = line >= had ? value : profile_add(f->sums[line], value);
	return 0;
}

struct heavy {
	int64_t sum;
	uint32_t line;
};

static int heavier_first(const void *pa, const void *pb)
{
	const struct heavy *a = pa, *b = pb;

	if (a->sum != b->sum)
		return a->sum < b->sum ? 1 : -1;
	return a->line < b->line ? -1 : a->line > b->line;
}

/* Line 0 is the empty string, which no sample has. */
static int write_lines(struct folder *f, struct buf *out)
{
	const uint32_t n = strtab_count(&f->lines);
	cleanup(freep_cleanup) struct heavy *order = calloc(n, sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 1; i < n; i++)
		order[i] = (struct heavy){ f->sums[i], i };
	qsort(order + 1, n - 1, sizeof(*order), heavier_first);
	for (uint32_t i = 1; i < n && order[i].sum > 0; i++) {
		buf_bytes(out, strtab_get(&f->lines, order[i].line),
			  strtab_len(&f->lines, order[i].line));
		buf_printf(out, " %" PRId64 "\n", order[i].sum);
	}
	return out->err;
}

int folded_write(const struct profile *p, struct buf *out)
{
	const int samples = profile_find_type(p, "samples");
	const size_t type = samples >= 0 ? (size_t)samples : profile_default_type(p);
	cleanup(freep_cleanup) uint32_t *order = NULL;
	cleanup(folder_release) struct folder f = {
		.p = p,
		.comm = profile_find_string(p, "comm"),
		.texts = STRTAB_INIT,
		.lines = STRTAB_INIT,
		.location_text = calloc((size_t)profile_location_count(p) + 1, sizeof(uint32_t)),
		.scratch = BUF_INIT(SIZE_MAX / 4),
		.line = BUF_INIT(SIZE_MAX / 4),
	};
	int r = f.location_text ? profile_sorted(p, type, &order) : -ENOMEM;

	for (uint32_t id = 1; !r && id <= profile_location_count(p); id++)
		r = prepare_location(&f, id);
	for (uint32_t i = 0; !r && i < profile_sample_count(p); i++)
		r = add_sample(&f, order[i], profile_values(p, order[i])[type]);
	return r ? r : write_lines(&f, out);
}
