/* suffix.c - see suffix.h. */
#include "symbol/suffix.h"

#include <ctype.h>

#define HASH_BYTES 20	/* "17h" and 16 digits, "E" */

static bool is_digits(const char *s, size_t n)
{
	size_t i = 0;

	while (i < n && isdigit((unsigned char)s[i]))
		i++;
	return n && i == n;
}

static bool is_identifier(const char *s, size_t n)
{
	size_t i = 0;

	while (i < n && (isalnum((unsigned char)s[i]) || s[i] == '_' || s[i] == '$'))
		i++;
	return n && i == n && !isdigit((unsigned char)*s);
}

static bool is_word(const char *s, size_t n, bool numbered)
{
	static const char *const words[] = { "cold", "localalias", "part", "constprop", "isra", "lto_priv",
					     "llvm", "__uniq" };

	for (size_t i = 0; i < (numbered ? ARRAY_SIZE(words) : 2); i++)
		if (strlen(words[i]) == n && !memcmp(words[i], s, n))
			return true;
	return false;
}

/* Where the last part of a name of n bytes starts with its dot; n: nowhere. */
static size_t last_dot(const char *s, size_t n)
{
	const char *dot = memrchr(s, '.', n);

	return dot ? (size_t)(dot - s) : n;
}

/* Where the last ".word" or ".word.number" of n bytes starts; n: there is none. */
static size_t last_suffix(const char *s, size_t n, bool *ret_numbered)
{
	size_t dot = last_dot(s, n), end = n;

	*ret_numbered = dot < n && is_digits(s + dot + 1, n - dot - 1);
	if (*ret_numbered) {
		end = dot;
		dot = last_dot(s, end);
	}
	return dot && dot < end && is_word(s + dot + 1, end - dot - 1, *ret_numbered) ? dot : n;
}

static size_t by_words(const char *s, size_t len)
{
	bool numbered, any_numbered = false, all_numbered = true;
	size_t n = len, at;

	while ((at = last_suffix(s, n, &numbered)) < n) {
		n = at;
		any_numbered |= numbered;
		all_numbered &= numbered;
	}
	if (!all_numbered && !is_identifier(s, n))
		return len;
	return !any_numbered && n == 4 && !memcmp(s, "main", 4) ? len : n;
}

size_t suffix_at(const char *name, bool is_mangled)
{
	size_t len = strlen(name);

	if (!is_mangled)
		return by_words(name, len);
	for (const char *p = name + len; name[1] == 'Z' && p - name > HASH_BYTES; p--)
		if ((*p == '.' || !*p) && p[-1] == 'E' && !memcmp(p - HASH_BYTES, "17h", 3))
			return (size_t)(p - name);
	return strcspn(name, ".");
}

void suffix_clones(struct buf *to, const char *suffix)
{
	while (*suffix) {
		size_t n = 1 + strcspn(suffix + 1, ".");

		while (suffix[n] && isdigit((unsigned char)suffix[n + 1]))
			n += 1 + strcspn(suffix + n + 1, ".");
		buf_str(to, " [clone ");
		buf_bytes(to, suffix, n);
		buf_char(to, ']');
		suffix += n;
	}
}
