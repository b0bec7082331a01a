/* langnames.c - see langnames.h. */
#include "symbol/langnames.h"

#include <ctype.h>
#include <libiberty/demangle.h>

/* Without "(int)" and "!(int)", wherever they stand: "app.map!(int).map(int).inner()" is
 * app.map.map.inner. A template argument may also stand alone: "app.map!int". */
static void drop_arguments(char *s)
{
	char *to = s;
	unsigned int depth = 0;

	for (const char *p = s; *p; p++) {
		if (*p == '!' && !depth && p[1] != '(') {
			p += strcspn(p, ".( ") - 1;
			continue;
		}
		depth += *p == '(';
		if (!depth && *p != '!')
			*to++ = *p;
		depth -= *p == ')' && depth;
	}
	*to = '\0';
	s[strcspn(s, " ")] = '\0';	/* " const" behind the parameters */
}

static int d_text(const char *mangled, enum demangle_mode mode, char **ret)
{
	size_t len = 0, backrefs = 0;
	char *s;

	for (; mangled[len]; len++)
		backrefs += mangled[len] == 'Q';
	if (len > LANGNAMES_D_MAX || backrefs > LANGNAMES_D_BACKREFS)
		return -ENOENT;
	s = dlang_demangle(mangled, 0);
	if (!s)
		return -ENOENT;
	if (mode == DEMANGLE_SIMPLE && strcmp(mangled, "_Dmain") != 0)
		drop_arguments(s);
	if (!*s || strlen(s) > DEMANGLE_MAX_TEXT) {
		free(s);
		return -ENOENT;
	}
	*ret = s;
	return 0;
}

static int nibble(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : islower((unsigned char)c) && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The number that ends the name of a function, "_287": where it starts, or the end. */
static size_t stamp_at(const char *s)
{
	size_t len = strlen(s), at = len;

	while (at && isdigit((unsigned char)s[at - 1]))
		at--;
	return at < len && at > 1 && s[at - 1] == '_' ? at - 1 : len;
}

/* name is what follows "caml". */
static int ocaml_text(const char *name, enum demangle_mode mode, char **ret)
{
	size_t len = mode == DEMANGLE_SIMPLE ? stamp_at(name) : strlen(name);
	bool qualified = false;
	char *s, *to;

	s = to = malloc(len + 1);
	if (!s)
		return -ENOMEM;
	for (size_t i = 0; i < len; i++) {
		bool two = i + 1 < len && name[i] == '_' && name[i + 1] == '_' && i && i + 2 < len;
		int hi = name[i] == '$' && i + 2 < len ? nibble(name[i + 1]) : -1, lo;

		lo = hi > 0 ? nibble(name[i + 2]) : -1;	/* not 0x00 to 0x0f: no control characters */
		qualified |= two || name[i] == '.';
		*to++ = two ? '.' : lo >= 0 && hi * 16 + lo != 0x7f ? (char)(hi * 16 + lo) : name[i];
		i += two ? 1 : lo >= 0 && hi * 16 + lo != 0x7f ? 2 : 0;
	}
	*to = '\0';
	if (!qualified) {
		free(s);
		return -ENOENT;
	}
	*ret = s;
	return 0;
}

/* Type arguments, from the first "[" to the last "]", as "[...]". Before 1.20 there was "type..eq.[4]string", since then
 * "type:.eq.[4]string". */
static int go_text(const char *name, char **ret)
{
	size_t n = strcspn(name, "["), before = strncmp(name, "type:.", 6) ? strcspn(name, " :") : n;
	const char *open = name + n, *close = strrchr(name, ']');

	if (!strncmp(name, "type..", 6) || !memchr(name, '.', n) || before < n || !close || close < open + 2 ||
	    open[1] == ']')
		return -ENOENT;
	return asprintf(ret, "%.*s[...]%s", (int)n, name, close + 1) < 0 ? -ENOMEM : 0;
}

int langnames(const char *mangled, enum demangle_mode mode, char **ret)
{
	if (!strncmp(mangled, "_D", 2) && (isdigit((unsigned char)mangled[2]) || !strcmp(mangled, "_Dmain")))
		return d_text(mangled, mode, ret);
	if (!strncmp(mangled, "caml", 4) && isupper((unsigned char)mangled[4]))
		return ocaml_text(mangled + 4, mode, ret);
	if (!strncmp(mangled, "_ada_", 5) && mangled[5]) {
		*ret = strdup(mangled + 5);
		return *ret ? 0 : -ENOMEM;
	}
	return mode == DEMANGLE_SIMPLE ? go_text(mangled, ret) : -ENOENT;
}
