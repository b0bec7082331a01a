/* config.c - see config.h: libyaml's events to option_set, without a tree in between.
 *
 * In every function that reads a node, r->event is the node's first event when it begins, and the
 * node's last when it returns 0; next() then moves on.
 */
#include "cli/config.h"

#include <ctype.h>
#include <sys/stat.h>
#include <yaml.h>

enum {
	NAME_MAX_BYTES = 64,	/* of an option; longer paths of keys are none */
};

struct reader {
	yaml_parser_t parser;
	yaml_event_t event;
	const char *name;	/* of the file, for messages */
	const struct option_values *v;
	bool *seen;		/* the rows that this file has set */
	struct err *e;
};

static int fail_at(struct reader *r, yaml_mark_t at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int fail_at(struct reader *r, yaml_mark_t at, const char *fmt, ...)
{
	char text[sizeof(r->e->msg)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(r->e, -EINVAL, "%.200s:%zu:%zu: %s", r->name, at.line + 1, at.column + 1,
		       text);
}

/* A sentence of option_set about a flag becomes one about a key. */
static int fail_option(struct reader *r, yaml_mark_t at, int error, const struct err *why)
{
	if (error == -ENOMEM)
		return err_set(r->e, error, "%s", why->msg);
	return fail_at(r, at, "%s", why->msg + (strncmp(why->msg, "--", 2) ? 0 : 2));
}

/* What libyaml has to say, which isn't always something. */
static int fail_yaml(struct reader *r)
{
	const yaml_parser_t *p = &r->parser;

	if (p->error == YAML_MEMORY_ERROR)
		return err_set(r->e, -ENOMEM, "out of memory");
	if (p->error == YAML_READER_ERROR)
		return err_set(r->e, -EINVAL, "%.200s: byte %zu: %s", r->name, p->problem_offset,
			       p->problem ? p->problem : "not UTF-8");
	return fail_at(r, p->problem_mark, "%s%s%s", p->context ? p->context : "",
		       p->context ? ": " : "", p->problem ? p->problem : "not YAML");
}

static int next(struct reader *r)
{
	yaml_event_delete(&r->event);
	memset(&r->event, 0, sizeof(r->event));
	return yaml_parser_parse(&r->parser, &r->event) ? 0 : fail_yaml(r);
}

/* ---- nodes ---- */

static bool is_null(const yaml_event_t *ev)
{
	static const char *const nulls[] = { "", "~", "null", "Null", "NULL" };

	if (ev->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(nulls); i++)
		if (!strcmp((const char *)ev->data.scalar.value, nulls[i]))
			return true;
	return false;
}

/* The text of the scalar that is next, or an error if what is there isn't one. Borrowed until
 * next(). */
static int scalar(struct reader *r, const char *what, const char **ret)
{
	const yaml_event_t *ev = &r->event;

	if (ev->type == YAML_ALIAS_EVENT)
		return fail_at(r, ev->start_mark, "aliases are not accepted");
	if (ev->type != YAML_SCALAR_EVENT)
		return fail_at(r, ev->start_mark, "%s is one value, not a %s", what,
			       ev->type == YAML_SEQUENCE_START_EVENT ? "list" : "mapping");
	if (ev->data.scalar.anchor || ev->data.scalar.tag)
		return fail_at(r, ev->start_mark, "anchors and tags are not accepted");
	if (strlen((const char *)ev->data.scalar.value) != ev->data.scalar.length)
		return fail_at(r, ev->start_mark, "%s has a zero byte", what);
	if (is_null(ev))
		return fail_at(r, ev->start_mark, "%s has no value", what);
	*ret = (const char *)ev->data.scalar.value;
	return 0;
}

/* Whether the node is a collection of this kind; its start is consumed then. */
static int enter(struct reader *r, yaml_event_type_t kind, bool *ret)
{
	const yaml_event_t *ev = &r->event;
	const void *anchor, *tag;

	*ret = ev->type == kind;
	if (!*ret)
		return 0;
	anchor = kind == YAML_MAPPING_START_EVENT ? ev->data.mapping_start.anchor
						  : ev->data.sequence_start.anchor;
	tag = kind == YAML_MAPPING_START_EVENT ? ev->data.mapping_start.tag
					       : ev->data.sequence_start.tag;
	if (anchor || tag)
		return fail_at(r, ev->start_mark, "anchors and tags are not accepted");
	return next(r);
}

/* ---- values ---- */

static int set_text(struct reader *r, const struct option_row *row)
{
	struct err why = { "" };
	const char *text;
	int ret = scalar(r, row->name, &text);

	if (ret)
		return ret;
	ret = option_set_from(r->v, row, SOURCE_FILE, text, &why);
	return ret ? fail_option(r, r->event.start_mark, ret, &why) : 0;
}

/* { NAME: VALUE, ... } as "NAME<joint>VALUE" each, for lists of pairs. */
static int set_joined(struct reader *r, const struct option_row *row)
{
	struct err why = { "" };
	const char *text;
	int ret;

	while (r->event.type != YAML_MAPPING_END_EVENT) {
		cleanup(buf_cleanup) struct buf pair = BUF_INIT(CONFIG_MAX_BYTES);
		yaml_mark_t at = r->event.start_mark;

		ret = scalar(r, row->name, &text);
		if (ret)
			return ret;
		buf_printf(&pair, "%s%s", text, row->joint);
		ret = next(r);
		if (!ret)
			ret = scalar(r, row->name, &text);
		if (ret)
			return ret;
		buf_str(&pair, text);
		if (pair.err)
			return err_set(r->e, pair.err, "out of memory");
		ret = option_set_from(r->v, row, SOURCE_FILE, pair.data, &why);
		if (ret)
			return fail_option(r, at, ret, &why);
		ret = next(r);
		if (ret)
			return ret;
	}
	return 0;
}

/* Copies a key with its dashes. Cut, so that it fits no name, when it is too long. */
static void key_name(const char *prefix, const char *key, char ret[static NAME_MAX_BYTES])
{
	snprintf(ret, NAME_MAX_BYTES, "%s%s%s", prefix, prefix[0] ? "-" : "", key);
	for (char *c = ret; *c; c++)
		if (*c == '_' || *c == '.')
			*c = '-';
}

static int unknown_key(struct reader *r, yaml_mark_t at, const char *name,
		       const struct option_row *rows)
{
	const char *near = nearest_word(name, &rows->name, options_count(rows), sizeof(*rows));

	return fail_at(r, at, "unknown key '%s'%s%s%s", name, near ? " (did you mean " : "",
		       near ? near : "", near ? "?)" : "");
}

/* A list, or a mapping of pairs, as the value of a member of a struct. */
static int member_value(struct reader *r, const struct option_row *member,
			const struct option_row *row, void *element)
{
	struct option_values inner = { .rows = row->rows, .opts = element };
	uint8_t sources[32] = { 0 };	/* a member each; `given` has as many bits */
	const struct option_values *outer = r->v;
	bool mapping = false, list = false;
	int ret;

	inner.sources = sources;
	r->v = &inner;
	ret = enter(r, YAML_MAPPING_START_EVENT, &mapping);
	if (!ret && mapping && member->joint)
		ret = set_joined(r, member);
	else if (!ret && mapping)
		ret = fail_at(r, r->event.start_mark, "%s is one value, not a mapping",
			      member->name);
	else if (!ret && member->type == OPT_LIST)
		ret = enter(r, YAML_SEQUENCE_START_EVENT, &list);
	while (!ret && list && r->event.type != YAML_SEQUENCE_END_EVENT) {
		ret = set_text(r, member);
		if (!ret)
			ret = next(r);
	}
	if (!ret && !mapping && !list)
		ret = set_text(r, member);
	r->v = outer;
	if (!ret)
		*(uint32_t *)element |= 1U << (member - row->rows);
	return ret;
}

/* { NAME: VALUE, ... } as one struct of an OPT_STRUCTS; the mapping's start is consumed. */
static int set_element(struct reader *r, const struct option_row *row, yaml_mark_t start)
{
	char name[NAME_MAX_BYTES];
	const struct option_row *member;
	struct err why = { "" };
	const char *key;
	void *element;
	int ret = option_add(r->v, row, SOURCE_FILE, &element, &why);

	if (ret)
		return fail_option(r, start, ret, &why);
	while (r->event.type != YAML_MAPPING_END_EVENT) {
		yaml_mark_t at = r->event.start_mark;

		ret = scalar(r, row->name, &key);
		if (ret)
			return ret;
		key_name("", key, name);
		member = option_by_name(row->rows, name, strlen(name));
		if (!member)
			return unknown_key(r, at, name, row->rows);
		if (*(uint32_t *)element & 1U << (member - row->rows))
			return fail_at(r, at, "%s stands twice", name);
		ret = next(r);
		if (!ret)
			ret = member_value(r, member, row, element);
		if (!ret)
			ret = next(r);
		if (ret)
			return ret;
	}
	if (!row->pairs && !(*(uint32_t *)element & 1))
		return fail_at(r, start, "%s: %s is missing", row->name, row->rows[0].name);
	if (!*(uint32_t *)element)
		return fail_at(r, start, "%s: nothing is given", row->name);
	return 0;
}

/* One element of a list, or the value of an option that isn't one. */
static int set_one(struct reader *r, const struct option_row *row)
{
	yaml_mark_t at = r->event.start_mark;
	bool mapping;
	int ret = enter(r, YAML_MAPPING_START_EVENT, &mapping);

	if (ret)
		return ret;
	if (mapping && row->type == OPT_STRUCTS)
		return set_element(r, row, at);
	if (mapping)
		return fail_at(r, at, "%s is one value, not a mapping", row->name);
	return set_text(r, row);
}

static int set_value(struct reader *r, const struct option_row *row)
{
	bool is_list = row->type == OPT_LIST || row->type == OPT_STRUCTS ||
		       row->type == OPT_U32_LIST;
	bool collection;
	int ret;

	if (row->joint) {
		ret = enter(r, YAML_MAPPING_START_EVENT, &collection);
		if (ret || collection)
			return ret ? ret : set_joined(r, row);
	}
	if (!is_list)
		return set_one(r, row);
	ret = enter(r, YAML_SEQUENCE_START_EVENT, &collection);
	if (ret || !collection)
		return ret ? ret : set_one(r, row);
	while (!ret && r->event.type != YAML_SEQUENCE_END_EVENT) {
		ret = set_one(r, row);
		if (!ret)
			ret = next(r);
	}
	return ret;
}

/* ---- keys ---- */

static const struct option_row *find_key(const struct option_row *rows, const char *name)
{
	for (; rows->type != OPT_END; rows++)
		if (!strcmp(rows->name, name) || (rows->key && !strcmp(rows->key, name)))
			return rows;
	return NULL;
}

static bool has_prefix(const char *name, const char *prefix)
{
	size_t n = strlen(prefix);

	return name && !strncmp(name, prefix, n) && name[n] == '-';
}

static bool is_section(const struct option_row *rows, const char *name)
{
	for (; rows->type != OPT_END; rows++)
		if (has_prefix(rows->name, name) || has_prefix(rows->key, name))
			return true;
	return false;
}

/* The keys of the document, or of a section in it: as deep as names have dashes. */
static int read_section(struct reader *r, const char *prefix)
{
	const struct option_row *row;
	char name[NAME_MAX_BYTES];
	const char *key;
	bool mapping;
	int ret = 0;

	while (!ret && r->event.type != YAML_MAPPING_END_EVENT) {
		yaml_mark_t at = r->event.start_mark;

		ret = scalar(r, "a key", &key);
		if (ret)
			return ret;
		key_name(prefix, key, name);
		row = find_key(r->v->rows, name);
		if (!row && !is_section(r->v->rows, name))
			return unknown_key(r, at, name, r->v->rows);
		if (row && r->seen[row - r->v->rows])
			return fail_at(r, at, "%s stands twice", name);
		ret = next(r);
		if (!ret && row) {
			r->seen[row - r->v->rows] = true;
			ret = set_value(r, row);
		} else if (!ret) {
			ret = enter(r, YAML_MAPPING_START_EVENT, &mapping);
			if (!ret && !mapping)
				ret = fail_at(r, at, "%s is a section, with keys below it", name);
			if (!ret)
				ret = read_section(r, name);
		}
		if (!ret)
			ret = next(r);
	}
	return ret;
}

/* An empty file, or one of comments, has no document. */
static int read_stream(struct reader *r)
{
	bool mapping;
	int ret = next(r);	/* the stream's start */

	if (!ret)
		ret = next(r);
	if (ret || r->event.type == YAML_STREAM_END_EVENT)
		return ret;
	ret = next(r);		/* the document's start */
	if (!ret && r->event.type == YAML_SCALAR_EVENT && is_null(&r->event)) {
		ret = next(r);
	} else {
		if (!ret)
			ret = enter(r, YAML_MAPPING_START_EVENT, &mapping);
		if (!ret && !mapping)
			ret = fail_at(r, r->event.start_mark, "expected keys and values");
		if (!ret)
			ret = read_section(r, "");
		if (!ret)
			ret = next(r);
	}
	if (!ret)
		ret = next(r);	/* the document's end */
	if (!ret && r->event.type != YAML_STREAM_END_EVENT)
		ret = fail_at(r, r->event.start_mark, "a second document");
	return ret;
}

int config_text(const struct option_values *v, const char *name, const char *text, size_t n,
		struct err *e)
{
	cleanup(freep_cleanup) bool *seen = calloc(options_count(v->rows) + 1, sizeof(*seen));
	struct err none;
	struct reader r = { .name = name, .v = v, .seen = seen, .e = e ? e : &none };
	int ret;

	if (!seen || !yaml_parser_initialize(&r.parser))
		return err_set(e, -ENOMEM, "out of memory");
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, n);
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
	ret = read_stream(&r);
	yaml_event_delete(&r.event);
	yaml_parser_delete(&r.parser);
	return ret;
}

int config_file(const struct option_values *v, const char *path, struct err *e)
{
	cleanup(file_cleanup) FILE *f = fopen(path, "re");
	cleanup(freep_cleanup) char *text = malloc(CONFIG_MAX_BYTES + 1);
	size_t n;

	if (!text)
		return err_set(e, -ENOMEM, "out of memory");
	if (!f)
		return err_set(e, -EINVAL, "%.200s: %s", path, strerror(errno));
	n = fread(text, 1, CONFIG_MAX_BYTES + 1, f);
	if (ferror(f))
		return err_set(e, -EINVAL, "%.200s: %s", path, strerror(errno));
	if (n > CONFIG_MAX_BYTES)
		return err_set(e, -EINVAL, "%.200s: more than %u bytes", path, CONFIG_MAX_BYTES);
	return config_text(v, path, text, n, e);
}
