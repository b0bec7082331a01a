/* report_frames.c - see report_frames.h. */
#include "profile/report_frames.h"

#include <inttypes.h>
#include <regex.h>

#include "profile/names.h"

void report_release(struct report *r)
{
	strtab_free(&r->rows);
	free(r->first);
	free(r->frames);
	free(r->set_row);
	free(r->focus);
	free(r->ignore);
}

/* The name in b as a row, fit for a terminal. */
static int put_row(struct report *r, const struct buf *b, uint32_t *ret)
{
	cleanup(buf_cleanup) struct buf clean = BUF_INIT(SIZE_MAX / 4);

	name_clean(&clean, b->data ? b->data : "", b->len);
	if (!clean.len)
		buf_str(&clean, "[unknown]");
	if (b->err || clean.err)
		return b->err ? b->err : clean.err;
	return strtab_put(&r->rows, clean.data, clean.len, ret);
}

static int prepare_location(struct report *r, uint32_t id, bool by_module, struct buf *b)
{
	const size_t n = by_module ? 1 : name_frame_count(r->p, id);
	int err = array_grow(&r->frames, &r->frames_cap, r->nframes + n, sizeof(*r->frames));

	r->first[id] = (uint32_t)r->nframes;
	for (size_t i = 0; !err && i < n; i++) {
		buf_reset(b);
		if (by_module)
			name_module(r->p, profile_location_get(r->p, id).mapping, b);
		else
			name_frame(r->p, id, i, b);
		err = put_row(r, b, &r->frames[r->nframes++]);
	}
	r->first[id + 1] = (uint32_t)r->nframes;
	return err;
}

static int prepare_frames(struct report *r, bool by_module)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(SIZE_MAX / 4);
	const uint32_t n = profile_location_count(r->p);
	int err = 0;

	r->first = calloc((size_t)n + 2, sizeof(*r->first));
	if (!r->first)
		return -ENOMEM;
	for (uint32_t id = 1; !err && id <= n; id++)
		err = prepare_location(r, id, by_module, &b);
	return err;
}

/* ---- rows by label ---- */

static int no_such_label(const struct report *r, struct err *e)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(300);
	cleanup(freep_cleanup) bool *seen = calloc(strtab_count(&r->p->strings), 1);

	for (uint32_t set = 0; seen && set < profile_labels_count(r->p); set++)
		for (size_t i = 0; i < profile_label_count(r->p, set); i++) {
			const uint32_t key = profile_label_get(r->p, set, i).key;

			if (!seen[key]) {
				buf_str(&b, b.len ? ", " : "");
				buf_str(&b, profile_str(r->p, key));
			}
			seen[key] = true;
		}
	return err_set(e, -EINVAL, "--by: '%s' is not function, module, process, thread or a "
		       "label of this profile (%s)", r->o->by, b.len ? b.data : "it has none");
}

/* The process of a label set is its pid; what it is called is for the samples to say. */
static void process_name(const struct report *r, const struct name_keys *keys, uint32_t set,
			 const uint32_t *pid_comm, struct buf *b)
{
	struct profile_label pid;

	if (!profile_label_find(r->p, set, keys->pid, &pid)) {
		name_thread(r->p, keys, set, b);
		return;
	}
	if (pid_comm[set])
		buf_str(b, profile_str(r->p, pid_comm[set]));
	buf_str(b, pid_comm[set] ? " (" : "(");
	name_label(r->p, &pid, b);
	buf_char(b, ')');
}

/* For each label set the name of its process: comm of the thread whose tid is the pid, else of the
 * first sample of that pid, in order of weight. Threads may have names of their own. */
static int find_processes(const struct report *r, const struct name_keys *keys,
			  uint32_t **ret_comm)
{
	struct pid { int64_t num, str; } id;
	struct best { uint32_t comm; bool is_main; };
	cleanup(freep_cleanup) uint32_t *order = NULL, *comms = NULL;
	cleanup(freep_cleanup) struct best *best = NULL;
	cleanup(map_free) struct map pids = MAP_INIT(sizeof(struct pid));
	const uint32_t sets = profile_labels_count(r->p);
	size_t cap = 0;
	int err = profile_sorted(r->p, r->type, &order);

	comms = calloc(sets, sizeof(*comms));
	if (!err && !comms)
		err = -ENOMEM;
	for (uint32_t i = 0; !err && i < profile_sample_count(r->p); i++) {
		const uint32_t set = profile_labels_id(r->p, order[i]);
		struct profile_label pid, tid, comm;
		uint32_t n;
		bool added, is_main;

		if (!profile_label_find(r->p, set, keys->pid, &pid) ||
		    !profile_label_find(r->p, set, keys->comm, &comm))
			continue;
		is_main = profile_label_find(r->p, set, keys->tid, &tid) && tid.num == pid.num;
		id = (struct pid){ pid.num, pid.str };
		err = map_put(&pids, &id, &n, &added);
		if (!err)
			err = array_grow(&best, &cap, pids.n, sizeof(*best));
		if (!err && (added || (is_main && !best[n].is_main)))
			best[n] = (struct best){ comm.str, is_main };
	}
	for (uint32_t set = 0; !err && set < sets; set++) {
		struct profile_label pid;
		uint32_t n = MAP_NONE;

		if (profile_label_find(r->p, set, keys->pid, &pid)) {
			id = (struct pid){ pid.num, pid.str };
			n = map_find(&pids, &id);
		}
		comms[set] = n == MAP_NONE ? 0 : best[n].comm;
	}
	if (!err)
		*ret_comm = take(comms);
	return err;
}

static int prepare_labels(struct report *r, struct err *e)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(SIZE_MAX / 4);
	cleanup(freep_cleanup) uint32_t *pid_comm = NULL;
	const bool by_process = !strcmp(r->o->by, "process");
	const bool by_thread = !strcmp(r->o->by, "thread");
	const struct name_keys keys = name_keys(r->p);
	const uint32_t key = profile_find_string(r->p, r->o->by), n = profile_labels_count(r->p);
	bool found = by_process || by_thread;
	int err = by_process ? find_processes(r, &keys, &pid_comm) : 0;

	r->set_row = calloc(n, sizeof(*r->set_row));
	if (!err && !r->set_row)
		err = -ENOMEM;
	for (uint32_t set = 0; !err && set < n; set++) {
		struct profile_label l;

		buf_reset(&b);
		if (by_process) {
			process_name(r, &keys, set, pid_comm, &b);
		} else if (by_thread) {
			name_thread(r->p, &keys, set, &b);
		} else if (profile_label_find(r->p, set, key, &l)) {
			name_label(r->p, &l, &b);
			found = true;
		} else {
			buf_str(&b, "[none]");
		}
		err = put_row(r, &b, &r->set_row[set]);
	}
	return err || found ? err : no_such_label(r, e);
}

/* ---- focus and ignore ---- */

static bool location_matches(const struct report *r, uint32_t id, const regex_t *re)
{
	const struct profile_location l = profile_location_get(r->p, id);
	const uint32_t file = l.mapping ? profile_mapping_get(r->p, l.mapping).file : 0;
	const size_t n = profile_line_count(r->p, id);

	if (!regexec(re, profile_str(r->p, file), 0, NULL, 0))
		return true;
	for (size_t i = 0; i < n; i++) {
		const struct profile_line line = profile_line_get(r->p, id, i);
		const struct profile_function f = profile_function_get(r->p, line.function);

		if (!regexec(re, profile_str(r->p, f.name ? f.name : f.system_name), 0, NULL, 0))
			return true;
	}
	return false;
}

static int match_locations(const struct report *r, const char *option, const char *text,
			   bool **ret, struct err *e)
{
	const uint32_t n = profile_location_count(r->p);
	cleanup(freep_cleanup) bool *match = calloc((size_t)n + 1, sizeof(*match));
	char why[200];
	regex_t re;
	int bad;

	if (!match)
		return -ENOMEM;
	bad = regcomp(&re, text, REG_EXTENDED | REG_NOSUB);
	if (bad) {
		regerror(bad, &re, why, sizeof(why));
		return err_set(e, -EINVAL, "%s: '%.200s' is not a regular expression: %s", option,
			       text, why);
	}
	for (uint32_t id = 1; id <= n; id++)
		match[id] = location_matches(r, id, &re);
	regfree(&re);
	*ret = take(match);
	return 0;
}

static bool any_frame(const struct report *r, uint32_t sample, const bool *match)
{
	const size_t n = profile_depth(r->p, sample);

	for (size_t i = 0; i < n; i++)
		if (match[profile_frame(r->p, sample, i)])
			return true;
	return false;
}

bool report_selects(const struct report *r, uint32_t sample)
{
	return (!r->focus || any_frame(r, sample, r->focus)) &&
	       (!r->ignore || !any_frame(r, sample, r->ignore));
}

bool report_is_minor(const struct report *r, int64_t value)
{
	const double size = value < 0 ? -(double)value : (double)value;

	return size * 100 < r->o->min_percent * (double)r->total;
}

/* ---- all of it ---- */

static int find_type(struct report *r, struct err *e)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(300);
	int type;

	if (!r->o->sample_type) {
		r->type = profile_default_type(r->p);
		return 0;
	}
	type = profile_find_type(r->p, r->o->sample_type);
	if (type >= 0) {
		r->type = (size_t)type;
		return 0;
	}
	for (size_t i = 0; i < r->p->ntypes; i++)
		buf_printf(&b, "%s%s", i ? ", " : "", profile_str(r->p, r->p->types[i].type));
	return err_set(e, -EINVAL, "--sample-type: '%.100s' is not in this profile (%s)",
		       r->o->sample_type, b.len ? b.data : "it has none");
}

int report_prepare(struct report *r, const struct profile *p, const struct report_options *o,
		   struct err *e)
{
	const char *by = o->by ? o->by : "function";
	const bool by_module = !strcmp(by, "module");
	int err;

	*r = (struct report){ .p = p, .o = o, .rows = STRTAB_INIT };
	r->by_frame = by_module || !strcmp(by, "function");
	if (o->tree && !r->by_frame)
		return err_set(e, -EINVAL, "--tree shows functions or modules, not --by %.100s",
			       by);
	err = find_type(r, e);
	if (!err)
		err = r->by_frame ? prepare_frames(r, by_module) : prepare_labels(r, e);
	if (!err && o->focus)
		err = match_locations(r, "--focus", o->focus, &r->focus, e);
	if (!err && o->ignore)
		err = match_locations(r, "--ignore", o->ignore, &r->ignore, e);
	for (uint32_t i = 0; !err && i < profile_sample_count(p); i++) {
		const int64_t v = profile_values(p, i)[r->type];

		r->total = profile_add(r->total, v);
		if (report_selects(r, i))
			r->selected = profile_add(r->selected, v);
	}
	return err;
}
