/* config_values.c - the environment as a source of options, and options as a file; see config.h. */
#include "cli/config.h"

#include <ctype.h>

static const char *const source_names[] = {
	[SOURCE_NONE] = "not set",
	[SOURCE_DEFAULT] = "default",
	[SOURCE_FILE] = "file",
	[SOURCE_ENVIRONMENT] = "environment",
	[SOURCE_FLAG] = "command line",
};

static bool is_list(const struct option_row *row)
{
	return row->type == OPT_LIST || row->type == OPT_U32_LIST || row->type == OPT_STRUCTS;
}

/* ---- environment ---- */

/* The row of a variable, "SPOOL_DIR" without its prefix. */
static const struct option_row *find_variable(const struct option_row *rows, const char *name,
					      size_t n)
{
	for (; rows->type != OPT_END; rows++) {
		const char *flag = rows->name;
		size_t i = 0;

		while (i < n && flag[i] &&
		       name[i] == (flag[i] == '-' ? '_' : toupper((unsigned char)flag[i])))
			i++;
		if (i == n && !rows->name[i])
			return rows;
	}
	return NULL;
}

/* {SVC}_SERVICE_HOST, {SVC}_SERVICE_PORT_NAME, {SVC}_PORT_80_TCP_ADDR... of a pod's service links
 * (Kubernetes, "Discovering services"), where the service's name begins with wick. */
static bool is_service_link(const char *name, size_t n)
{
	char text[128];

	snprintf(text, sizeof(text), "_%.*s_", (int)MIN(n, sizeof(text) - 3), name);
	return strstr(text, "_SERVICE_") || strstr(text, "_PORT_");
}

static int fail_variable(const struct option_row *row, const char *variable, size_t n, int error,
			 const struct err *why, struct err *e)
{
	size_t skip = 2 + strlen(row->name);	/* "--NAME" */

	if (error == -ENOMEM || strncmp(why->msg, "--", 2) || strlen(why->msg) < skip)
		return err_set(e, error, "%s", why->msg);
	return err_set(e, error, "%.*s%s", (int)n, variable, why->msg + skip);
}

/* The elements of a list one by one; white space around them is nobody's. */
static int set_elements(const struct option_values *v, const struct option_row *row,
			const char *value, struct err *e)
{
	cleanup(freep_cleanup) char *copy = strdup(value);
	char *rest = copy, *element, *end;
	size_t n = 0;
	int r = 0;

	if (!copy)
		return err_set(e, -ENOMEM, "out of memory");
	while (!r && (element = strsep(&rest, ";\n"))) {
		element += strspn(element, " \t\r");
		end = element + strlen(element);
		while (end > element && strchr(" \t\r", end[-1]))
			*--end = '\0';
		if (*element) {
			r = option_set_from(v, row, SOURCE_ENVIRONMENT, element, e);
			n++;
		}
	}
	if (!r && !n)
		return err_set(e, -EINVAL, "--%s: the value (%s) is empty", row->name, row->arg);
	return r;
}

int config_environment(const struct option_values *v, char *const *variables,
		       struct buf *ret_unknown, struct err *e)
{
	const size_t prefix = strlen(CONFIG_ENVIRONMENT_PREFIX);
	const struct option_row *row;
	struct err why = { "" };
	const char *value;
	size_t n;
	int r;

	for (; *variables; variables++) {
		value = strchr(*variables, '=');
		if (!value || strncmp(*variables, CONFIG_ENVIRONMENT_PREFIX, prefix))
			continue;
		n = (size_t)(value++ - *variables);
		row = find_variable(v->rows, *variables + prefix, n - prefix);
		if (!row && ret_unknown && !is_service_link(*variables + prefix, n - prefix))
			buf_printf(ret_unknown, "%.*s\n", (int)n, *variables);
		if (!row)
			continue;
		r = is_list(row) ? set_elements(v, row, value, &why)
				 : option_set_from(v, row, SOURCE_ENVIRONMENT, value, &why);
		if (r)
			return fail_variable(row, *variables, n, r, &why, e);
	}
	return 0;
}

/* ---- printing ---- */

static void print_key(const char *name, struct buf *b)
{
	for (; *name; name++)
		buf_char(b, *name == '-' ? '_' : *name);
	buf_str(b, ": ");
}

/* A double-quoted scalar (YAML 1.2, 7.3.1); what isn't printable as \xNN. Some characters beyond
 * ASCII are line breaks to YAML 1.1, which libyaml reads, or a byte order mark. */
static void print_quoted(const char *s, struct buf *b)
{
	static const char *const escapes[][2] = {
		{ "\xc2\x85", "\\N" },
		{ "\xe2\x80\xa8", "\\L" },
		{ "\xe2\x80\xa9", "\\P" },
		{ "\xef\xbb\xbf", "\\uFEFF" },
	};
	size_t i;

	buf_char(b, '"');
	for (; *s; s++) {
		for (i = 0; i < ARRAY_SIZE(escapes); i++)
			if (!strncmp(s, escapes[i][0], strlen(escapes[i][0])))
				break;
		if (i < ARRAY_SIZE(escapes)) {
			buf_str(b, escapes[i][1]);
			s += strlen(escapes[i][0]) - 1;
		} else if (*s == '"' || *s == '\\')
			buf_printf(b, "\\%c", *s);
		else if ((unsigned char)*s < 0x20 || *s == 0x7f)
			buf_printf(b, "\\x%02x", (unsigned char)*s);
		else
			buf_char(b, *s);
	}
	buf_char(b, '"');
}

static void print_text(const struct option_row *row, const char *text, bool masks, struct buf *b)
{
	cleanup(buf_cleanup) struct buf masked = BUF_INIT(CONFIG_MAX_BYTES);

	if (masks && row->mask)
		row->mask(text, &masked);
	print_quoted(masked.data ? masked.data : text, b);
}

static void print_value(const struct option_row *row, const void *opts, bool masks, struct buf *b)
{
	cleanup(buf_cleanup) struct buf text = BUF_INIT(CONFIG_MAX_BYTES);
	struct str_list texts;
	struct u32_list numbers;

	if (row->type == OPT_LIST) {
		memcpy(&texts, (const char *)opts + row->offset, sizeof(texts));
		buf_char(b, '[');
		for (size_t i = 0; i < texts.n; i++) {
			buf_str(b, i ? ", " : "");
			print_text(row, texts.v[i], masks, b);
		}
		buf_char(b, ']');
	} else if (row->type == OPT_U32_LIST) {
		memcpy(&numbers, (const char *)opts + row->offset, sizeof(numbers));
		for (size_t i = 0; i < numbers.n; i++)
			buf_printf(b, "%s%u", i ? "," : "", numbers.v[i]);
	} else {
		option_text(row, opts, &text);
		if (row->type == OPT_STRING || row->type == OPT_FILE)
			print_text(row, text.data ? text.data : "", masks, b);
		else
			buf_str(b, text.data ? text.data : "");
	}
}

static bool is_set(const struct option_row *row, const void *opts, enum option_source source)
{
	const char *string;

	if (row->type == OPT_STRING || row->type == OPT_FILE) {
		memcpy(&string, (const char *)opts + row->offset, sizeof(string));
		return string;
	}
	return source != SOURCE_NONE || row->type == OPT_FLAG;
}

static void print_structs(const struct option_row *row, const void *opts, bool masks, struct buf *b)
{
	struct { char *v; size_t n, cap; } list;

	memcpy(&list, (const char *)opts + row->offset, sizeof(list));
	for (size_t i = 0; i < list.n; i++) {
		const char *element = list.v + i * row->size, *lead = "  - ";
		uint32_t given;

		memcpy(&given, element, sizeof(given));
		for (size_t m = 0; row->rows[m].type != OPT_END; m++) {
			if (!(given & 1U << m))
				continue;
			buf_str(b, lead);
			print_key(row->rows[m].name, b);
			print_value(&row->rows[m], element, masks, b);
			buf_char(b, '\n');
			lead = "    ";
		}
	}
}

void config_print(const struct option_values *v, struct buf *ret)
{
	const struct option_row *row;
	enum option_source source;

	for (row = v->rows; row->type != OPT_END; row++) {
		if (row->no_key)
			continue;
		source = v->sources[row - v->rows];
		if (!is_set(row, v->opts, source)) {
			buf_str(ret, "# ");
			print_key(row->key ? row->key : row->name, ret);
			buf_str(ret, "not set\n");
			continue;
		}
		print_key(row->key ? row->key : row->name, ret);
		if (row->type != OPT_STRUCTS)
			print_value(row, v->opts, true, ret);
		buf_printf(ret, "%s# %s\n", row->type == OPT_STRUCTS ? "" : "  ",
			   source_names[source]);
		if (row->type == OPT_STRUCTS)
			print_structs(row, v->opts, true, ret);
	}
}

bool config_same(const struct option_row *row, const void *a, const void *b)
{
	cleanup(buf_cleanup) struct buf text_a = BUF_INIT(CONFIG_MAX_BYTES);
	cleanup(buf_cleanup) struct buf text_b = BUF_INIT(CONFIG_MAX_BYTES);

	if (row->type == OPT_STRUCTS) {
		print_structs(row, a, false, &text_a);
		print_structs(row, b, false, &text_b);
	} else {
		print_value(row, a, false, &text_a);
		print_value(row, b, false, &text_b);
	}
	return text_a.len == text_b.len &&
	       (!text_a.len || !memcmp(text_a.data, text_b.data, text_a.len));
}
