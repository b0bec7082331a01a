/* golines.c - see golines.h. */
#include "symbol/golines.h"

#include "base/arena.h"
#include "elf/gotab.h"

#define PATH_MAX_BYTES 4096

struct golines {
	struct gotab *t;
	bool inlines;
	struct line_frame frames[GOLINES_DEPTH_MAX + 1];
	struct arena texts;	/* of the chain at hand */
};

int golines_open(const struct elf *e, bool inlines, struct golines **ret)
{
	cleanup(golines_cleanup) struct golines *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return -ENOMEM;
	g->inlines = inlines;
	r = gotab_open(e, &g->t);
	if (r)
		return r;
	*ret = take(g);
	return 0;
}

void golines_free(struct golines *g)
{
	if (!g)
		return;
	gotab_free(g->t);
	arena_free(&g->texts);
	free(g);
}

static int name_of(struct golines *g, const struct gotab_func *f, const char **ret)
{
	const char *name;
	size_t n;
	int r = gotab_name(g->t, f, &name, &n);

	if (r)
		return r;
	*ret = arena_string(&g->texts, name, n);
	return *ret ? 0 : -ENOMEM;
}

/* File and line of an address of a function. What isn't known stays unknown. */
static int place_of(struct golines *g, const struct gotab_func *f, const struct gotab_info *info,
		    uint64_t vaddr, struct line_frame *ret)
{
	char path[PATH_MAX_BYTES];
	int32_t file = -1, line = -1;
	int r = info->pcfile ? gotab_value_at(g->t, f, info->pcfile, vaddr, &file) : 0;

	ret->file = ret->scope = "";
	if (!r && info->pcln)
		r = gotab_value_at(g->t, f, info->pcln, vaddr, &line);
	if (r)
		return r;
	ret->line = line > 0 ? (uint32_t)line : 0;
	if (gotab_file(g->t, info, file, path, sizeof(path)))
		return 0;
	ret->file = arena_string(&g->texts, path, strlen(path));
	return ret->file ? 0 : -ENOMEM;
}

int golines_lookup(struct golines *g, uint64_t vaddr, struct line_chain *ret)
{
	struct gotab_func f;
	struct gotab_info info;
	struct gotab_call call;
	size_t n = 0;
	int r = gotab_find(g->t, vaddr, &f);

	arena_free(&g->texts);
	if (!r)
		r = gotab_info(g->t, &f, &info);
	if (r)
		return r;
	while (!r && g->inlines && n < GOLINES_DEPTH_MAX) {
		struct line_frame *frame = &g->frames[n];

		r = gotab_inlined(g->t, &f, &info, vaddr, &call);
		if (r)
			break;
		r = place_of(g, &f, &info, vaddr, frame);
		if (!r)
			r = name_of(g, &call.callee, &frame->name);
		frame->start_line = call.start_line;
		vaddr = call.at;
		n++;
		if (!r && (vaddr < f.start || vaddr >= f.end))
			r = -EBADMSG;
	}
	if (r && r != -ENOENT)
		return r;
	r = place_of(g, &f, &info, vaddr, &g->frames[n]);
	if (!r)
		r = name_of(g, &f, &g->frames[n].name);
	g->frames[n].start_line = info.start_line;
	if (!r)
		*ret = (struct line_chain){ g->frames, n + 1 };
	return r;
}
