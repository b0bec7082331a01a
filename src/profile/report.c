/* report.c - see report.h: the header and the table. */
#include "profile/report.h"

#include <inttypes.h>
#include <time.h>

#include "profile/names.h"
#include "profile/report_frames.h"
#include "profile/unit.h"

struct row {
	int64_t flat, cum;
	uint32_t name;
	uint32_t seen;	/* by the sample before this number */
};

static int heavier_first(const void *pa, const void *pb)
{
	const struct row *a = pa, *b = pb;

	if (a->flat != b->flat)
		return a->flat < b->flat ? 1 : -1;
	if (a->cum != b->cum)
		return a->cum < b->cum ? 1 : -1;
	return a->name < b->name ? -1 : a->name > b->name;
}

static void add_sample(const struct report *r, uint32_t n, int64_t value, struct row *rows)
{
	const size_t depth = profile_depth(r->p, n);

	if (!r->by_frame) {
		struct row *row = &rows[r->set_row[profile_labels_id(r->p, n)]];

		row->flat = row->cum = profile_add(row->flat, value);
		return;
	}
	for (size_t i = 0; i < depth; i++) {
		const uint32_t loc = profile_frame(r->p, n, i);

		for (uint32_t f = r->first[loc]; f < r->first[loc + 1]; f++) {
			struct row *row = &rows[r->frames[f]];

			if (!i && f == r->first[loc])
				row->flat = profile_add(row->flat, value);
			if (row->seen == n + 1)
				continue;	/* recursion counts once */
			row->seen = n + 1;
			row->cum = profile_add(row->cum, value);
		}
	}
}

static const char *plural(const struct report *r)
{
	if (!r->by_frame)
		return "rows";
	return r->o->by && !strcmp(r->o->by, "module") ? "modules" : "functions";
}

static void put_row(const struct report *r, const struct row *row, int64_t sum, struct buf *out)
{
	const char *unit = profile_str(r->p, r->p->types[r->type].unit);
	char flat[UNIT_TEXT_MAX], flat_share[UNIT_TEXT_MAX], sum_share[UNIT_TEXT_MAX];
	char cum[UNIT_TEXT_MAX], cum_share[UNIT_TEXT_MAX];

	unit_format(row->flat, unit, flat);
	unit_percent(row->flat, r->total, flat_share);
	unit_percent(sum, r->total, sum_share);
	buf_printf(out, "%10s %7s %7s", flat, flat_share, sum_share);
	if (r->by_frame)
		buf_printf(out, " %10s %7s", unit_format(row->cum, unit, cum),
			   unit_percent(row->cum, r->total, cum_share));
	buf_str(out, "  ");
	buf_bytes(out, strtab_get(&r->rows, row->name), strtab_len(&r->rows, row->name));
	buf_char(out, '\n');
}

static void put_table(const struct report *r, const struct row *rows, size_t n, struct buf *out)
{
	const size_t limit = r->o->limit ? MIN(n, r->o->limit) : n;
	const char *title = r->o->by ? r->o->by : "function";
	char share[UNIT_TEXT_MAX];
	int64_t sum = 0;
	size_t shown = 0, present = 0;

	for (size_t i = 0; i < n; i++) {
		if (!rows[i].flat && !rows[i].cum)
			continue;
		present++;
		if (shown < limit && !report_is_minor(r, rows[i].cum) && ++shown)
			sum = profile_add(sum, rows[i].flat);
	}
	buf_printf(out, "Showing %zu of %zu %s, %s of the total\n\n", shown, present, plural(r),
		   unit_percent(sum, r->total, share));
	buf_printf(out, "%10s %7s %7s", r->by_frame ? "flat" : "value",
		   r->by_frame ? "flat%" : "value%", "sum%");
	if (r->by_frame)
		buf_printf(out, " %10s %7s", "cum", "cum%");
	buf_printf(out, "  %s\n", title);
	sum = 0;
	for (size_t i = 0; i < n && shown; i++) {
		if ((!rows[i].flat && !rows[i].cum) || report_is_minor(r, rows[i].cum))
			continue;
		sum = profile_add(sum, rows[i].flat);
		put_row(r, &rows[i], sum, out);
		shown--;
	}
}

static int table(const struct report *r, struct buf *out)
{
	const size_t n = strtab_count(&r->rows);
	cleanup(freep_cleanup) struct row *rows = calloc(n, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		rows[i].name = i;
	for (uint32_t i = 0; i < profile_sample_count(r->p); i++)
		if (report_selects(r, i))
			add_sample(r, i, profile_values(r->p, i)[r->type], rows);
	qsort(rows, n, sizeof(*rows), heavier_first);
	put_table(r, rows, n, out);
	return 0;
}

/* Text from the file, fit for a terminal. */
static void put_text(const struct profile *p, uint32_t id, struct buf *out)
{
	name_clean(out, profile_str(p, id), strtab_len(&p->strings, id));
}

void report_header(const struct profile *p, size_t type, struct buf *out)
{
	const char *unit = type < p->ntypes ? profile_str(p, p->types[type].unit) : "";
	const time_t seconds = (time_t)(p->time_nanos / 1000000000);
	char text[UNIT_TEXT_MAX], when[64];
	struct tm tm;
	int64_t total = 0;

	for (uint32_t i = 0; i < profile_sample_count(p); i++)
		total = profile_add(total, profile_values(p, i)[type]);
	buf_str(out, "Type: ");
	if (type < p->ntypes) {
		put_text(p, p->types[type].type, out);
		buf_str(out, " (");
		put_text(p, p->types[type].unit, out);
		buf_str(out, ")\n");
	} else {
		buf_str(out, "none\n");
	}
	if (p->time_nanos && gmtime_r(&seconds, &tm) &&
	    strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", &tm))
		buf_printf(out, "Time: %s\n", when);
	if (p->duration_nanos)
		buf_printf(out, "Duration: %s\n",
			   unit_format(p->duration_nanos, "nanoseconds", text));
	buf_printf(out, "Total: %s", unit_format(total, unit, text));
	if (p->duration_nanos > 0 && !strcmp(unit, "nanoseconds"))
		buf_printf(out, " (%s of one CPU)", unit_percent(total, p->duration_nanos, text));
	buf_printf(out, " in %" PRIu32 " different samples\n", profile_sample_count(p));
}

static void put_selection(const struct report *r, struct buf *out)
{
	const char *unit = r->p->ntypes ? profile_str(r->p, r->p->types[r->type].unit) : "";
	char value[UNIT_TEXT_MAX], share[UNIT_TEXT_MAX];

	if (r->focus || r->ignore)
		buf_printf(out, "Selected: %s (%s)\n", unit_format(r->selected, unit, value),
			   unit_percent(r->selected, r->total, share));
}

int report_write(const struct profile *p, const struct report_options *o, struct buf *out,
		 struct err *e)
{
	cleanup(report_release) struct report r = { .rows = STRTAB_INIT };
	int err = report_prepare(&r, p, o, e);

	if (err)
		return err;
	report_header(p, r.type, out);
	put_selection(&r, out);
	err = o->tree ? report_tree(&r, out) : table(&r, out);
	return err ? err : out->err;
}
