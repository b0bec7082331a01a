/* demangle.c - see demangle.h.
 *
 * libiberty's ready-made functions allocate as much as a name expands to and take as long as
 * that takes, so they aren't for hostile names. Instead:
 *  - C++ is parsed into libiberty's tree, whose size is linear in the name. The tree is a graph
 *    (substitutions are shared), so the nodes that a walk would meet are counted before one is
 *    done; what SIMPLE drops is dropped in the tree, not in the text.
 *  - Printing goes through a callback that leaves by longjmp when there is too much text.
 */
#include "symbol/langnames.h"
#include "symbol/suffix.h"

#include <libiberty/demangle.h>
#include <setjmp.h>

#define NODES_MAX	 16384	/* met when walking the tree; each prints about a byte */
#define DEPTH_MAX	 1024	/* libiberty's own limit when printing */
#define SAVED_SCOPES_MAX 16384	/* libiberty puts templates * scopes * 16 bytes on the stack */
#define CALLS_MAX	 65536	/* of the callback */
#define REPARSED_MAX	 8	/* see costly() */

struct text {
	jmp_buf too_much;
	bool rust;
	size_t len, calls;
	char s[DEMANGLE_MAX_TEXT + 1];
};

/* The callback of libiberty. The Rust demangler holds memory while it prints a Punycode
 * identifier, one character per call, and would lose it in a jump; any piece of two ASCII bytes
 * comes from elsewhere. Names can't grow without such pieces ("::", ", "). */
static void append(const char *s, size_t n, void *opaque)
{
	struct text *t = opaque;

	if (++t->calls <= CALLS_MAX && n <= DEMANGLE_MAX_TEXT - t->len) {
		if (n)	/* an empty Rust identifier is (NULL, 0) */
			memcpy(t->s + t->len, s, n);
		t->len += n;
		return;
	}
	t->calls = CALLS_MAX;	/* nothing more is taken */
	if (!t->rust || (n >= 2 && !((s[0] | s[1]) & 0x80)))
		longjmp(t->too_much, 1);
}

/* Children of the kinds of nodes that have them; kinds that later libiberties add count as
 * leaves. Returns whether *ret_a and *ret_b (either may be NULL) were set. */
static bool children(const struct demangle_component *c, const struct demangle_component **ret_a,
		     const struct demangle_component **ret_b)
{
	switch (c->type) {
	case DEMANGLE_COMPONENT_CTOR:
		*ret_a = c->u.s_ctor.name;
		*ret_b = NULL;
		return true;
	case DEMANGLE_COMPONENT_DTOR:
		*ret_a = c->u.s_dtor.name;
		*ret_b = NULL;
		return true;
	case DEMANGLE_COMPONENT_EXTENDED_OPERATOR:
		*ret_a = c->u.s_extended_operator.name;
		*ret_b = NULL;
		return true;
	case DEMANGLE_COMPONENT_LAMBDA:
	case DEMANGLE_COMPONENT_DEFAULT_ARG:
		*ret_a = c->u.s_unary_num.sub;
		*ret_b = NULL;
		return true;
	case DEMANGLE_COMPONENT_NAME:
	case DEMANGLE_COMPONENT_TEMPLATE_PARAM:
	case DEMANGLE_COMPONENT_FUNCTION_PARAM:
	case DEMANGLE_COMPONENT_SUB_STD:
	case DEMANGLE_COMPONENT_BUILTIN_TYPE:
	case DEMANGLE_COMPONENT_EXTENDED_BUILTIN_TYPE:
	case DEMANGLE_COMPONENT_OPERATOR:
	case DEMANGLE_COMPONENT_CHARACTER:
	case DEMANGLE_COMPONENT_NUMBER:
	case DEMANGLE_COMPONENT_UNNAMED_TYPE:
	case DEMANGLE_COMPONENT_FIXED_TYPE:
		return false;
	default:
		if (c->type > DEMANGLE_COMPONENT_TEMPLATE_PACK_PARM)
			return false;
		*ret_a = c->u.s_binary.left;
		*ret_b = c->u.s_binary.right;
		return true;
	}
}

struct weight {
	unsigned int nodes, templates, scopes;
};

/* Counts what a walk meets; false as soon as that is too much. */
static bool weigh(const struct demangle_component *c, unsigned int depth, struct weight *w)
{
	const struct demangle_component *a = NULL, *b = NULL;

	if (!c)
		return true;
	if (++w->nodes > NODES_MAX || depth > DEPTH_MAX)
		return false;
	if (!children(c, &a, &b))
		return true;
	if (c->type == DEMANGLE_COMPONENT_TEMPLATE)
		w->templates++;
	if ((c->type == DEMANGLE_COMPONENT_REFERENCE ||
	     c->type == DEMANGLE_COMPONENT_RVALUE_REFERENCE) && a &&
	    a->type == DEMANGLE_COMPONENT_TEMPLATE_PARAM)
		w->scopes++;
	return weigh(a, depth + 1, w) && weigh(b, depth + 1, w);
}

static bool printable(const struct demangle_component *c)
{
	struct weight w = { 0 };

	return weigh(c, 0, &w) && (uint64_t)w.templates * w.scopes <= SAVED_SCOPES_MAX;
}

/* Drops from the name of a function what SIMPLE drops; returns what stands in its place. Only
 * names are entered, not types; scopes may be shared too, so the steps are limited: beyond them
 * the name keeps the rest. */
static struct demangle_component *simplify(struct demangle_component *c, unsigned int *steps)
{
	const char *arguments;

	if (!c || !*steps)
		return c;
	--*steps;
	switch (c->type) {
	case DEMANGLE_COMPONENT_TYPED_NAME:	/* name and function type */
	case DEMANGLE_COMPONENT_TEMPLATE:	/* name and arguments */
	case DEMANGLE_COMPONENT_CLONE:		/* function and suffix */
	case DEMANGLE_COMPONENT_CONST_THIS:
	case DEMANGLE_COMPONENT_VOLATILE_THIS:
	case DEMANGLE_COMPONENT_RESTRICT_THIS:
	case DEMANGLE_COMPONENT_REFERENCE_THIS:
	case DEMANGLE_COMPONENT_RVALUE_REFERENCE_THIS:
		return simplify(c->u.s_binary.left, steps);
	case DEMANGLE_COMPONENT_QUAL_NAME:
	case DEMANGLE_COMPONENT_LOCAL_NAME:
		c->u.s_binary.left = simplify(c->u.s_binary.left, steps);
		c->u.s_binary.right = simplify(c->u.s_binary.right, steps);
		return c;
	case DEMANGLE_COMPONENT_SUB_STD:	/* text: std::basic_string<char, ...> */
		arguments = memchr(c->u.s_string.string, '<', (size_t)c->u.s_string.len);
		if (arguments)
			c->u.s_string.len = (int)(arguments - c->u.s_string.string);
		return c;
	case DEMANGLE_COMPONENT_THUNK:
	case DEMANGLE_COMPONENT_VIRTUAL_THUNK:
	case DEMANGLE_COMPONENT_COVARIANT_THUNK:
	case DEMANGLE_COMPONENT_TRANSACTION_CLONE:
	case DEMANGLE_COMPONENT_NONTRANSACTION_CLONE:
	case DEMANGLE_COMPONENT_TLS_INIT:
	case DEMANGLE_COMPONENT_TLS_WRAPPER:
		c->u.s_binary.left = simplify(c->u.s_binary.left, steps);
		return c;
	default:
		return c;
	}
}

/* setjmp's function keeps its state in *t: locals could be lost in the jump. */
static bool print_tree(struct text *t, int options, struct demangle_component *c)
{
	t->len = t->calls = 0;
	t->rust = false;
	if (setjmp(t->too_much))
		return false;
	return cplus_demangle_print_callback(options, c, append, t) && t->calls < CALLS_MAX;
}

/* In a conversion operator ("cv") "T_I" is ambiguous: the arguments may belong to the parameter
 * or to the operator (Itanium C++ ABI, 5.1.3). libiberty tries one, then the other, so nested
 * ones double the time of parsing each. No compiler's name has more than one or two. */
static bool costly(const char *mangled)
{
	const char *q;
	unsigned int n = 0;

	if (!strstr(mangled, "cv"))
		return false;
	for (const char *p = strchr(mangled, 'T'); p; p = strchr(p + 1, 'T')) {
		q = p + 1 + strspn(p + 1, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
		n += q[0] == '_' && (q[1] == 'I' || (q[1] == '_' && q[2] == 'I'));
	}
	return n > REPARSED_MAX;
}

static bool cplus_text(const char *mangled, enum demangle_mode mode, struct text *t)
{
	int options = mode == DEMANGLE_FULL ? DMGL_PARAMS | DMGL_ANSI : DMGL_NO_OPTS;
	unsigned int steps = DEPTH_MAX;
	struct demangle_component *c;
	void *memory = NULL;
	bool ok;

	if (costly(mangled))
		return false;
	c = cplus_demangle_v3_components(mangled, options, &memory);
	if (!c)
		return false;
	if (mode == DEMANGLE_SIMPLE)
		c = simplify(c, &steps);
	ok = printable(c) && print_tree(t, options, c);
	free(memory);
	if (ok || mode != DEMANGLE_SIMPLE)
		return ok;
	/* A conversion to a template parameter ("operator T") needs the arguments after all. */
	c = cplus_demangle_v3_components(mangled, options, &memory);
	ok = c && printable(c) && print_tree(t, options, c);
	free(memory);
	return ok;
}

static bool rust_text(const char *mangled, enum demangle_mode mode, struct text *t)
{
	t->len = t->calls = 0;
	t->rust = true;
	if (setjmp(t->too_much))
		return false;
	if (!rust_demangle_callback(mangled, mode == DEMANGLE_FULL ? DMGL_VERBOSE : 0, append, t))
		return false;
	return t->calls < CALLS_MAX;
}

/* A name without suffix. */
static int text_of(const char *mangled, enum demangle_mode mode, char **ret)
{
	struct text *t cleanup(freep_cleanup) = NULL;
	bool rust = !strncmp(mangled, "_R", 2), cplus = !strncmp(mangled, "_Z", 2), ok;
	char *s;

	if (!rust && !cplus)
		return langnames(mangled, mode, ret);
	t = malloc(sizeof(*t));
	if (!t)
		return -ENOMEM;
	ok = rust_text(mangled, mode, t);	/* legacy Rust looks like C++: the hash decides */
	if (!ok && cplus)
		ok = cplus_text(mangled, mode, t);
	if (!ok || !t->len)
		return -ENOENT;
	s = malloc(t->len + 1);
	if (!s)
		return -ENOMEM;
	memcpy(s, t->s, t->len);
	s[t->len] = '\0';
	*ret = s;
	return 0;
}

/* The first at bytes, and what FULL makes of the others. is_name: they are shown as they are if they aren't mangled. */
static int text_before(const char *mangled, size_t at, bool is_name, enum demangle_mode mode, char **ret)
{
	struct buf b cleanup(buf_cleanup) = BUF_INIT(DEMANGLE_MAX_TEXT);
	char *stem cleanup(freep_cleanup) = strndup(mangled, at), *text cleanup(freep_cleanup) = NULL;
	size_t len;
	int r = stem ? text_of(stem, mode, &text) : -ENOMEM;

	if (r && (r != -ENOENT || !is_name))
		return r;
	buf_str(&b, text ? text : stem);
	if (mode == DEMANGLE_FULL)
		suffix_clones(&b, mangled + at);
	r = buf_take(&b, ret, &len);
	return r == -E2BIG ? -ENOENT : r;
}

int demangle(const char *mangled, enum demangle_mode mode, char **ret)
{
	size_t len = strnlen(mangled, DEMANGLE_MAX_MANGLED + 1), at;
	int r = -ENOENT;

	if (mode == DEMANGLE_NONE || len > DEMANGLE_MAX_MANGLED)
		return -ENOENT;
	if (mangled[0] == '_' && (mangled[1] == 'Z' || mangled[1] == 'R' || mangled[1] == 'D')) {
		at = suffix_at(mangled, true);
		r = text_before(mangled, at, false, mode, ret);
		if (r == -ENOENT && at < len)	/* by libiberty's own idea of it */
			r = text_of(mangled, mode, ret);
	}
	if (r != -ENOENT)
		return r;
	at = suffix_at(mangled, false);
	return text_before(mangled, at, at < len, mode, ret);
}
