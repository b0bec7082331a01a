/* Tests of src/base: growing arrays, messages, buffers, UTF-8 repair, maps and string tables. */
#include <check.h>

#include "base/buf.h"
#include "base/map.h"

/* The same numbers in every run: xorshift. */
static uint32_t next(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/* ---- base.h ---- */

START_TEST(arrays_grow)
{
	cleanup(freep_cleanup) uint32_t *a = NULL;
	size_t cap = 0, before;
	unsigned int moves = 0;

	for (uint32_t i = 0; i < 100000; i++) {
		before = cap;
		ck_assert_int_eq(array_grow(&a, &cap, i + 1, sizeof(*a)), 0);
		ck_assert_uint_ge(cap, i + 1);
		moves += cap != before;
		a[i] = i * 7;
	}
	ck_assert_uint_le(moves, 17);	/* doubles */
	for (uint32_t i = 0; i < 100000; i++)
		ck_assert_uint_eq(a[i], i * 7);
	before = cap;
	ck_assert_int_eq(array_grow(&a, &cap, 0, sizeof(*a)), 0);
	ck_assert_uint_eq(cap, before);
}
END_TEST

START_TEST(arrays_too_large)
{
	uint64_t *a = NULL;
	size_t cap = 0;

	ck_assert_int_eq(array_grow(&a, &cap, SIZE_MAX, sizeof(*a)), -E2BIG);
	ck_assert_int_eq(array_grow(&a, &cap, SIZE_MAX / 8, sizeof(*a)), -E2BIG);
	ck_assert_int_eq(array_grow(&a, &cap, SIZE_MAX / 2 + 1, 1), -E2BIG);
	ck_assert_int_eq(array_grow(&a, &cap, 1, SIZE_MAX / 2), -E2BIG);
	ck_assert_ptr_null(a);
	ck_assert_uint_eq(cap, 0);
}
END_TEST

START_TEST(messages)
{
	struct err e = { "" };
	char text[2 * sizeof(e.msg)];

	ck_assert_int_eq(err_set(NULL, -EPERM, "nobody wants %s", "it"), -EPERM);
	ck_assert_int_eq(err_set(&e, -ENOENT, "no %s in %d", "file", 3), -ENOENT);
	ck_assert_str_eq(e.msg, "no file in 3");
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	ck_assert_int_eq(err_set(&e, -E2BIG, "%s", text), -E2BIG);
	ck_assert_uint_eq(strlen(e.msg), sizeof(e.msg) - 1);
}
END_TEST

/* Runs under the leak checker: what take() left behind is freed, what it moved is not. */
START_TEST(ownership)
{
	char *moved;
	{
		cleanup(freep_cleanup) char *kept = strdup("kept");
		cleanup(freep_cleanup) char *given = strdup("given");
		cleanup(fd_cleanup) int none = -1;
		cleanup(file_cleanup) FILE *nothing = NULL;

		(void)none;
		(void)nothing;
		ck_assert_str_eq(kept, "kept");
		moved = take(given);
		ck_assert_ptr_null(given);
	}
	ck_assert_str_eq(moved, "given");
	free(moved);
}
END_TEST

/* ---- buf.h ---- */

START_TEST(buffers)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(1000);
	char *bytes;
	size_t len;

	buf_str(&b, "one");
	buf_char(&b, ' ');
	buf_printf(&b, "%s %d", "two", 3);
	buf_bytes(&b, "\0!", 2);
	buf_bytes(&b, NULL, 0);
	buf_printf(&b, "%s", "");
	ck_assert_uint_eq(b.len, 11);
	ck_assert_mem_eq(b.data, "one two 3\0!", 12);
	ck_assert_int_eq(buf_take(&b, &bytes, &len), 0);
	ck_assert_uint_eq(len, 11);
	ck_assert_mem_eq(bytes, "one two 3\0!", 12);
	free(bytes);
	ck_assert_ptr_null(b.data);

	ck_assert_int_eq(buf_take(&b, &bytes, &len), 0);
	ck_assert_uint_eq(len, 0);
	ck_assert_str_eq(bytes, "");
	free(bytes);
	ck_assert_uint_eq(b.max, 1000);
}
END_TEST

START_TEST(buffers_stop_at_their_cap)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(8);
	char *bytes = NULL;
	size_t len = 77;

	buf_str(&b, "12345678");
	ck_assert_int_eq(b.err, 0);
	buf_bytes(&b, "", 0);
	ck_assert_int_eq(b.err, 0);
	buf_char(&b, '9');
	ck_assert_int_eq(b.err, -E2BIG);
	ck_assert_str_eq(b.data, "12345678");
	ck_assert_int_eq(buf_take(&b, &bytes, &len), -E2BIG);
	ck_assert_ptr_null(bytes);
	ck_assert_uint_eq(len, 77);

	buf_reset(&b);
	ck_assert_str_eq(b.data, "");
	buf_printf(&b, "%s", "123456789");	/* over the cap at once: nothing of it */
	ck_assert_int_eq(b.err, -E2BIG);
	ck_assert_uint_eq(b.len, 0);
	buf_str(&b, "x");			/* would fit, but an error sticks */
	ck_assert_uint_eq(b.len, 0);
	buf_reset(&b);
	buf_bytes(&b, "x", SIZE_MAX);
	ck_assert_int_eq(b.err, -E2BIG);
	buf_free(&b);
	ck_assert_int_eq(b.err, 0);
	buf_str(&b, "again");
	ck_assert_str_eq(b.data, "again");
}
END_TEST

#define BAD "\xef\xbf\xbd"	/* U+FFFD */

START_TEST(utf8_cases)
{
	static const char *const cases[][2] = {
		{ "", "" },
		{ "plain\tand\n", "plain\tand\n" },
		{ "\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\xa5", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\xa5" },
		{ "\x80", BAD },			/* alone */
		{ "a\xff\xfe" "b", "a" BAD BAD "b" },
		{ "\xc0\x80", BAD BAD },		/* overlong */
		{ "\xc1\xbf", BAD BAD },
		{ "\xe0\x9f\xbf", BAD BAD BAD },
		{ "\xf0\x8f\xbf\xbf", BAD BAD BAD BAD },
		{ "\xed\xa0\x80", BAD BAD BAD },	/* surrogate */
		{ "\xf4\x90\x80\x80", BAD BAD BAD BAD },/* beyond U+10FFFF */
		{ "\xf5\x80\x80\x80", BAD BAD BAD BAD },
		{ "\xe2\x82", BAD BAD },		/* cut off */
		{ "\xf0\x9f\x94", BAD BAD BAD },
		{ "\xe2\x82z", BAD BAD "z" },
		{ "\xc3\xc3\xa4", BAD "\xc3\xa4" },	/* starts again */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cleanup(buf_cleanup) struct buf b = BUF_INIT(100);

		buf_utf8(&b, cases[i][0], strlen(cases[i][0]));
		buf_bytes(&b, "", 0);
		ck_assert_str_eq(b.data, cases[i][1]);
	}
}
END_TEST

/* RFC 3629 section 3, as arithmetic. Bytes written, 0 for what has no encoding. */
static size_t encode(uint32_t c, char out[static 4])
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 63));
		out[2] = (char)(0x80 | (c & 63));
		return c >= 0xd800 && c < 0xe000 ? 0 : 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 63));
	out[2] = (char)(0x80 | (c >> 6 & 63));
	out[3] = (char)(0x80 | (c & 63));
	return c < 0x110000 ? 4 : 0;
}

START_TEST(utf8_every_character)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(64);

	for (uint32_t c = 0; c < 0x140000; c++) {
		char s[4];
		size_t n = encode(c, s);

		buf_reset(&b);
		buf_utf8(&b, s, n ? n : c < 0x10000 ? 3 : 4);
		if (n)
			ck_assert(b.len == n && !memcmp(b.data, s, n));
		else
			ck_assert_uint_eq(b.len, c < 0x10000 ? 9 : 12);
	}
}
END_TEST

/* The characters of valid text, by trying them all; false if it isn't valid. */
static bool is_utf8(const char *s, size_t n)
{
	size_t i = 0;

	while (i < n) {
		unsigned char c = (unsigned char)s[i];
		size_t len = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
		uint32_t value = len == 1 ? c : c & (0xffu >> (len + 1));
		char again[4];

		if (len > n - i)
			return false;
		for (size_t k = 1; k < len; k++)
			value = value << 6 | ((unsigned char)s[i + k] & 63);
		if (encode(value, again) != len || memcmp(s + i, again, len))
			return false;
		i += len;
	}
	return true;
}

START_TEST(utf8_random_bytes)
{
	cleanup(buf_cleanup) struct buf once = BUF_INIT(1000), twice = BUF_INIT(1000);
	static const unsigned char likely[] = { 0x7f, 0x80, 0xbf, 0xc2, 0xe0, 0xed, 0xf0, 0xf4 };
	uint32_t state = 1;
	char s[32];

	for (unsigned int round = 0; round < 20000; round++) {
		size_t n = next(&state) % sizeof(s);
		bool valid;

		for (size_t i = 0; i < n; i++)
			s[i] = (char)(next(&state) % 2 ? next(&state) :
						       likely[next(&state) % sizeof(likely)]);
		valid = is_utf8(s, n);
		buf_reset(&once);
		buf_utf8(&once, s, n);
		ck_assert(is_utf8(once.data, once.len));
		ck_assert_int_eq(valid, once.len == n && (!n || !memcmp(once.data, s, n)));
		buf_reset(&twice);
		buf_utf8(&twice, once.data, once.len);
		ck_assert(once.len == twice.len &&
			  (!once.len || !memcmp(once.data, twice.data, once.len)));
	}
}
END_TEST

/* ---- map.h ---- */

struct pair {
	uint64_t a;
	uint32_t b, zero;
};

/* Few different keys, so that they come again; the model is an array that is searched. */
START_TEST(map_like_an_array)
{
	static struct pair model[4000];
	struct map m = MAP_INIT(sizeof(struct pair));
	uint32_t n = 0, state = 7;

	ck_assert_uint_eq(map_find(&m, &model[0]), MAP_NONE);
	for (unsigned int round = 0; round < 6000; round++) {
		struct pair key = { next(&state) % 50, next(&state) % 50, 0 };
		uint32_t at = 0, id = MAP_NONE;
		bool added;

		while (at < n && memcmp(&model[at], &key, sizeof(key)))
			at++;
		ck_assert_uint_eq(map_find(&m, &key), at < n ? at : MAP_NONE);
		ck_assert_int_eq(map_put(&m, &key, &id, round % 2 ? &added : NULL), 0);
		ck_assert_uint_eq(id, at);
		if (round % 2)
			ck_assert_int_eq(added, at == n);
		if (at == n)
			model[n++] = key;
		ck_assert_uint_eq(m.n, n);
	}
	for (uint32_t i = 0; i < n; i++) {
		ck_assert_mem_eq(map_key(&m, i), &model[i], sizeof(model[i]));
		ck_assert_uint_eq(map_find(&m, &model[i]), i);
	}
	map_free(&m);
	ck_assert_uint_eq(m.n, 0);
	ck_assert_uint_eq(map_find(&m, &model[0]), MAP_NONE);
}
END_TEST

START_TEST(map_of_many)
{
	struct map m = MAP_INIT(sizeof(uint64_t));
	uint32_t id;

	for (uint64_t i = 0; i < 100000; i++) {
		uint64_t key = i << 12;		/* like addresses: the low bits are all alike */

		ck_assert_int_eq(map_put(&m, &key, &id, NULL), 0);
		ck_assert_uint_eq(id, i);
	}
	ck_assert_uint_ge(m.nslots, 2 * m.n);	/* at most half full */
	for (uint64_t i = 0; i < 100000; i++) {
		uint64_t key = i << 12, other = key | 1;

		ck_assert_uint_eq(map_find(&m, &key), i);
		ck_assert_uint_eq(map_find(&m, &other), MAP_NONE);
	}
	map_free(&m);
}
END_TEST

START_TEST(map_cleared)
{
	struct map m = MAP_INIT(1);
	unsigned char *keys;
	uint32_t id;

	for (unsigned int round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < 256; i++) {
			unsigned char key = (unsigned char)(i * 3 + round);

			ck_assert_uint_eq(map_find(&m, &key), MAP_NONE);
			ck_assert_int_eq(map_put(&m, &key, &id, NULL), 0);
			ck_assert_uint_eq(id, i);
		}
		keys = m.keys;
		map_clear(&m);
		ck_assert_uint_eq(m.n, 0);
		ck_assert_ptr_eq(m.keys, keys);
	}
	map_free(&m);
	map_clear(&m);
	map_free(&m);
}
END_TEST

START_TEST(strings)
{
	struct strtab t = STRTAB_INIT;
	uint32_t id = 77;

	ck_assert_uint_eq(strtab_count(&t), 1);
	ck_assert_str_eq(strtab_get(&t, 0), "");
	ck_assert_uint_eq(strtab_len(&t, 0), 0);
	ck_assert_int_eq(strtab_puts(&t, "", &id), 0);
	ck_assert_uint_eq(id, 0);
	ck_assert_int_eq(strtab_puts(&t, "abc", &id), 0);
	ck_assert_uint_eq(id, 1);
	ck_assert_int_eq(strtab_put(&t, "abcdef", 3, &id), 0);
	ck_assert_uint_eq(id, 1);
	ck_assert_int_eq(strtab_put(&t, "abc", 4, &id), 0);	/* with a NUL it is another */
	ck_assert_uint_eq(id, 2);
	ck_assert_uint_eq(strtab_len(&t, 2), 4);
	ck_assert_mem_eq(strtab_get(&t, 2), "abc\0", 5);
	ck_assert_int_eq(strtab_put(&t, "\0\0", 2, &id), 0);
	ck_assert_uint_eq(id, 3);
	ck_assert_int_eq(strtab_put(&t, "\0\0\0", 3, &id), 0);
	ck_assert_uint_eq(id, 4);
	ck_assert_uint_eq(strtab_count(&t), 5);
	strtab_free(&t);
	ck_assert_uint_eq(strtab_count(&t), 1);
}
END_TEST

START_TEST(strings_like_an_array)
{
	static struct {
		size_t n;
		char s[8];
	} model[4000] = { { 0, "" } };
	struct strtab t = STRTAB_INIT;
	uint32_t n = 1, state = 3;

	for (unsigned int round = 0; round < 6000; round++) {
		uint32_t at = 0, id = MAP_NONE;
		size_t len = next(&state) % 7;
		char s[8] = "";

		for (size_t i = 0; i < len; i++)
			s[i] = (char)(next(&state) % 4);	/* zeros too */
		while (at < n && (model[at].n != len || memcmp(model[at].s, s, len)))
			at++;
		ck_assert_int_eq(strtab_put(&t, s, len, &id), 0);
		ck_assert_uint_eq(id, at);
		if (at == n) {
			model[n].n = len;
			memcpy(model[n++].s, s, sizeof(s));
		}
		ck_assert_uint_eq(strtab_count(&t), n);
	}
	for (uint32_t i = 0; i < n; i++) {
		ck_assert_uint_eq(strtab_len(&t, i), model[i].n);
		ck_assert_mem_eq(strtab_get(&t, i), model[i].s, model[i].n + 1);
	}
	strtab_free(&t);
}
END_TEST

START_TEST(hashes)
{
	static const char zeros[40];
	uint64_t seen[40];

	ck_assert_uint_eq(hash_bytes("samples", 7), hash_bytes("samples of more", 7));
	for (size_t n = 0; n < ARRAY_SIZE(seen); n++) {
		seen[n] = hash_bytes(zeros, n);		/* the length counts */
		for (size_t i = 0; i < n; i++)
			ck_assert_uint_ne(seen[n], seen[i]);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("base");
	TCase *t = tcase_create("base");
	SRunner *runner;
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_test(t, arrays_grow);
	tcase_add_test(t, arrays_too_large);
	tcase_add_test(t, messages);
	tcase_add_test(t, ownership);
	tcase_add_test(t, buffers);
	tcase_add_test(t, buffers_stop_at_their_cap);
	tcase_add_test(t, utf8_cases);
	tcase_add_test(t, utf8_every_character);
	tcase_add_test(t, utf8_random_bytes);
	tcase_add_test(t, map_like_an_array);
	tcase_add_test(t, map_of_many);
	tcase_add_test(t, map_cleared);
	tcase_add_test(t, strings);
	tcase_add_test(t, strings_like_an_array);
	tcase_add_test(t, hashes);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
