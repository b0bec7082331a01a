/* build.c - see build.h. Locations are made once per frame word and remembered. */
#include "collect/build.h"

#include "kernel/outcome.h"

struct place {			/* of one frame word */
	uint32_t location;
	uint32_t module;
	bool named, marker;
};

struct module_use {
	uint32_t mapping[2];	/* profile mapping of unnamed and of named frames; 0: not made yet */
	uint32_t has;		/* PROFILE_HAS_* of the latter so far */
	uint64_t samples, unnamed_leaf;	/* with a frame in it; with an unnamed leaf in it */
	uint32_t last_entry;		/* that counted in samples */
};

struct builder {
	const struct samples *samples;
	struct symbolizer *sym;
	const struct build_options *o;
	struct profile *p;
	struct map frames;	/* frame word -> places[] */
	struct place *places;
	size_t places_cap;
	struct module_use *uses;/* of each module */
	size_t uses_cap;
	uint32_t pid_key, tid_key, comm_key;
	struct profile_line *lines;	/* of the location at hand */
	size_t lines_cap;
	uint32_t *ids;		/* locations of the stack at hand */
	size_t ids_cap;
	uint32_t entry;		/* at hand, from 1 */
	struct build_stats stats;
};

static int start(struct builder *b)
{
	struct profile *p = b->p;
	const struct event *ev = b->o->event;
	const char *type = ev->clock ? "cpu" : ev->name, *unit = ev->clock ? "nanoseconds" : "count";
	int r;

	p->time_nanos = b->o->time_nanos;
	p->duration_nanos = b->o->duration_nanos;
	p->period = ev->clock ? 1000000000 / b->o->freq : 1;
	r = profile_sample_type(p, "samples", "count");
	if (!r)
		r = profile_sample_type(p, type, unit);
	if (!r)
		r = profile_set_period_type(p, type, unit);
	if (!r)
		r = profile_string(p, type, &p->default_sample_type);
	if (!r)
		r = profile_string(p, "pid", &b->pid_key);
	if (!r)
		r = profile_string(p, "tid", &b->tid_key);
	if (!r)
		r = profile_string(p, "comm", &b->comm_key);
	return r;
}

/* What the mapping of a frame's module has, by this frame. */
static uint32_t has(const struct symbol_frame *f)
{
	uint32_t bits = f->name ? PROFILE_HAS_FUNCTIONS : 0;

	if (f->name && f->nlines)
		bits |= PROFILE_HAS_INLINE_FRAMES;
	for (size_t i = 0; f->name && i < f->nlines; i++) {
		bits |= *f->lines[i].file ? PROFILE_HAS_FILENAMES : 0;
		bits |= f->lines[i].line ? PROFILE_HAS_LINE_NUMBERS : 0;
	}
	return bits;
}

static int mapping(struct builder *b, uint32_t module, uint32_t bits, uint32_t *ret)
{
	bool named = bits & PROFILE_HAS_FUNCTIONS;
	const struct module *m = symbolizer_module(b->sym, module);
	size_t old = b->uses_cap;
	struct profile_mapping pm = {
		.start = m->start,
		.limit = m->limit,
		.offset = m->offset,
		.has = bits,
	};
	int r = array_grow(&b->uses, &b->uses_cap, (size_t)module + 1, sizeof(*b->uses));

	if (r)
		return r;
	memset(b->uses + old, 0, (b->uses_cap - old) * sizeof(*b->uses));
	if (!b->uses[module].mapping[named] || bits & ~b->uses[module].has) {
		r = profile_string(b->p, m->path, &pm.file);
		if (!r)
			r = profile_string(b->p, m->build_id, &pm.build_id);
		if (!r)
			r = profile_mapping(b->p, &pm, &b->uses[module].mapping[named]);
		if (r)
			return r;
		b->uses[module].has |= bits;
	}
	*ret = b->uses[module].mapping[named];
	return 0;
}

static int function_line(struct builder *b, const char *name, const char *system_name,
			 struct profile_line *ret)
{
	struct profile_function f = { 0 };
	int r = profile_string(b->p, name, &f.name);

	if (!r)
		r = profile_string(b->p, system_name, &f.system_name);
	return r ? r : profile_function(b->p, &f, &ret->function);
}

/* The location of a frame with lines: one for each inlined call and one for the function. */
static int add_lines(struct builder *b, const struct symbol_frame *f, struct place *ret,
		     const struct profile_location *loc)
{
	int r = array_grow(&b->lines, &b->lines_cap, f->nlines, sizeof(*b->lines));

	for (size_t i = 0; i < f->nlines && !r; i++) {
		const struct symbol_line *l = &f->lines[i];
		struct profile_function fn = { .start_line = l->start_line };

		b->lines[i] = (struct profile_line){ .line = l->line, .column = (int32_t)l->column };
		r = profile_string(b->p, l->name, &fn.name);
		if (!r)
			r = profile_string(b->p, l->system_name, &fn.system_name);
		if (!r)
			r = profile_string(b->p, l->file, &fn.file);
		if (!r)
			r = profile_function(b->p, &fn, &b->lines[i].function);
	}
	return r ? r : profile_location(b->p, loc, b->lines, f->nlines, &ret->location);
}

/* The name of a frame that has none: of its function, where that is known, so that one function is
 * one row of a report. */
static void unnamed(const struct module *m, const struct symbol_frame *f, char *buf, size_t size)
{
	if (m->kind == MODULE_ANON)
		snprintf(buf, size, "[unknown]");
	else if (m->kind == MODULE_SPECIAL || !strcmp(m->path, "[kernel]"))
		snprintf(buf, size, "%s", m->name);
	else
		snprintf(buf, size, "%s+0x%llx", m->name,
			 (unsigned long long)(f->function ? f->function : f->address));
}

static int marker_place(struct builder *b, uint64_t frame, struct place *ret)
{
	struct profile_location loc = { 0 };
	struct profile_line line = { 0 };
	char name[128];
	int r;

	snprintf(name, sizeof(name), "[truncated: %s]", outcome_text(WK_FRAME_MARK_OUTCOME(frame)));
	r = function_line(b, name, name, &line);
	ret->marker = true;
	return r ? r : profile_location(b->p, &loc, &line, 1, &ret->location);
}

static int make_place(struct builder *b, uint64_t frame, struct place *ret)
{
	struct profile_location loc = { 0 };
	struct profile_line line = { 0 };
	struct symbol_frame f;
	char name[512];
	int r;

	*ret = (struct place){ 0 };
	if (!WK_FRAME_IS_KERNEL(frame) && WK_FRAME_TAG(frame) == WK_FRAME_MARK)
		return marker_place(b, frame, ret);
	r = symbolizer_resolve(b->sym, frame, &f);
	if (r)
		return r;
	ret->module = f.module;
	ret->named = f.name != NULL;
	loc.address = f.address;
	r = mapping(b, f.module, has(&f), &loc.mapping);
	if (r)
		return r;
	if (f.name && f.nlines)
		return add_lines(b, &f, ret, &loc);
	if (!f.name) {
		unnamed(symbolizer_module(b->sym, f.module), &f, name, sizeof(name));
		f.name = f.system_name = name;
	}
	r = function_line(b, f.name, f.system_name, &line);
	return r ? r : profile_location(b->p, &loc, &line, 1, &ret->location);
}

static int place_of(struct builder *b, uint64_t frame, struct place *ret)
{
	struct place fresh;
	uint32_t n = map_find(&b->frames, &frame);
	int r;

	if (n == MAP_NONE) {
		r = make_place(b, frame, &fresh);
		if (!r)
			r = array_grow(&b->places, &b->places_cap, b->frames.n + 1,
				       sizeof(*b->places));
		if (!r)
			r = map_put(&b->frames, &frame, &n, NULL);
		if (r)
			return r;
		b->places[n] = fresh;
	}
	*ret = b->places[n];
	return 0;
}

static void account(struct builder *b, const struct place *p, bool leaf, uint64_t count)
{
	struct module_use *u;

	if (p->marker)
		return;
	u = &b->uses[p->module];
	b->stats.frames += count;
	b->stats.named += p->named ? count : 0;
	if (leaf && !p->named)
		u->unnamed_leaf += count;
	if (u->last_entry != b->entry)
		u->samples += count;
	u->last_entry = b->entry;
}

/* The locations of a stack. Without kernel names its kernel part is one frame. */
static int stack_ids(struct builder *b, uint32_t stack, uint64_t count, size_t *ret_n)
{
	size_t depth = samples_depth(b->samples, stack), n = 0;
	uint32_t last = 0;
	int r = array_grow(&b->ids, &b->ids_cap, depth + 1, sizeof(*b->ids));

	for (size_t i = 0; i < depth && !r; i++) {
		uint64_t frame = samples_frame(b->samples, stack, i);
		struct place p;

		r = place_of(b, frame, &p);
		if (r)
			break;
		account(b, &p, i == 0, count);
		if (i && WK_FRAME_IS_KERNEL(frame) && p.module == last &&
		    !strcmp(symbolizer_module(b->sym, p.module)->path, "[kernel]"))
			continue;
		last = p.module;
		b->ids[n++] = p.location;
	}
	*ret_n = n;
	return r;
}

static int add_entry(struct builder *b, uint32_t entry)
{
	const struct samples_key *k = samples_key(b->samples, entry);
	const struct samples_value *v = &b->samples->values[entry];
	struct profile_label labels[3] = {
		{ .key = b->pid_key, .num = k->pid },
		{ .key = b->comm_key },
		{ .key = b->tid_key, .num = k->tid },
	};
	int64_t values[2] = { (int64_t)v->count, (int64_t)v->weight };
	struct profile_stack stack = { 0 };
	int r;

	b->entry = entry + 1;
	r = stack_ids(b, k->stack, v->count, &stack.n);
	if (!r)
		r = profile_string(b->p, k->comm, &labels[1].str);
	stack.ids = b->ids;
	return r ? r : profile_sample(b->p, &stack, labels, k->tid ? 3 : 2, values, NULL);
}

/* The main binary of viewers: the program (not library) with most samples, in itself or in what it
 * calls: one that mostly waits for the kernel is no less the main one. */
static int choose_main(struct builder *b)
{
	uint64_t most = 0;
	uint32_t best = 0;

	for (uint32_t i = 0; i < symbolizer_module_count(b->sym) && i < b->uses_cap; i++) {
		const struct module_use *u = &b->uses[i];

		if (!symbolizer_module(b->sym, i)->executable || u->samples <= most)
			continue;
		most = u->samples;
		best = u->mapping[1] ? u->mapping[1] : u->mapping[0];
	}
	return best ? profile_set_main_mapping(b->p, best) : 0;
}

static void find_worst(struct builder *b)
{
	for (uint32_t i = 0; i < symbolizer_module_count(b->sym) && i < b->uses_cap; i++) {
		struct build_module m = { .module = i, .unnamed = b->uses[i].unnamed_leaf };

		for (size_t w = 0; w < ARRAY_SIZE(b->stats.worst); w++)
			if (m.unnamed > b->stats.worst[w].unnamed) {
				struct build_module down = b->stats.worst[w];

				b->stats.worst[w] = m;
				m = down;
			}
	}
}

static int build(struct builder *b)
{
	uint32_t total = b->o->entries ? (uint32_t)b->o->nentries : samples_entries(b->samples);
	int r = start(b);

	for (uint32_t i = 0; i < total && !r; i++) {
		r = add_entry(b, b->o->entries ? b->o->entries[i] : i);
		if (b->o->progress && i % 256 == 0)
			b->o->progress(b->o->ctx, i, total);
	}
	if (!r)
		r = choose_main(b);
	if (!r)
		find_worst(b);
	return r;
}

int build_profile(const struct samples *samples, struct symbolizer *symbolizer,
		  const struct build_options *o, struct profile **ret, struct build_stats *ret_stats)
{
	cleanup(profile_cleanup) struct profile *p = NULL;
	struct builder b = { .samples = samples, .sym = symbolizer, .o = o };
	int r = profile_new(&p);

	if (r)
		return r;
	b.p = p;
	b.frames = (struct map)MAP_INIT(sizeof(uint64_t));
	r = build(&b);
	map_free(&b.frames);
	free(b.places);
	free(b.lines);
	free(b.uses);
	free(b.ids);
	if (r)
		return r;
	*ret_stats = b.stats;
	*ret = take(p);
	return 0;
}
