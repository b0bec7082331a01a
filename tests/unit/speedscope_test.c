/* speedscope_test.c - speedscope's JSON (speedscope.h), byte by byte and by a JSON parser. */
#include <check.h>

#include "profile/speedscope.h"
#include "small_profile.h"

static struct buf json_of(const struct profile *p)
{
	struct buf b = BUF_INIT(64 << 20);

	MUST(speedscope_write(p, &b));
	return b;
}

#define HEAD                                                                                   \
	"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"               \
	"\"exporter\":\"wick\",\"activeProfileIndex\":0,\n\"shared\":{\"frames\":["

START_TEST(threads_and_inlined_frames)
{
	cleanup(profile_cleanup) struct profile *p = small_profile();
	const uint32_t lib = small_mapping(p, "/usr/lib/libc.so.6", 0);
	const uint32_t inlined = small_location(p, lib, 0x20, "in\"ner<outer");
	const uint32_t bare = small_location(p, lib, 0x1234, NULL);

	small_sample(p, STACK(inlined, bare), "app", 1, 2, 2);
	small_sample(p, STACK(bare), "app", 1, 2, 3);
	small_sample(p, STACK(bare), "big", 9, 9, 7);
	small_sample(p, STACK(bare), "none", 3, 3, 0);
	cleanup(buf_cleanup) struct buf b = json_of(p);

	ck_assert_str_eq(b.data, HEAD "\n{\"name\":\"in\\\"ner\",\"file\":\"src.c\",\"line\":1},\n"
		"{\"name\":\"outer\",\"file\":\"src.c\",\"line\":2},\n"
		"{\"name\":\"libc.so.6+0x1234\"}]},\n\"profiles\":[\n"
		"{\"type\":\"sampled\",\"name\":\"big (9/9)\",\"unit\":\"nanoseconds\","
		"\"startValue\":0,\"endValue\":70000000,\"samples\":[[2]],"
		"\"weights\":[70000000]},\n"
		"{\"type\":\"sampled\",\"name\":\"app (1/2)\",\"unit\":\"nanoseconds\","
		"\"startValue\":0,\"endValue\":50000000,\"samples\":[[2],\n[2,1,0]],"
		"\"weights\":[30000000,20000000]}]}\n");
}
END_TEST

START_TEST(empty)
{
	cleanup(profile_cleanup) struct profile *p = NULL;

	MUST(profile_new(&p));
	cleanup(buf_cleanup) struct buf b = json_of(p);

	ck_assert_str_eq(b.data, HEAD "]},\n\"profiles\":[{\"type\":\"sampled\",\"name\":\"\","
		"\"unit\":\"none\",\"startValue\":0,\"endValue\":0,\"samples\":[],"
		"\"weights\":[]}]}\n");
}
END_TEST

/* What a viewer relies on, asked of an independent parser. */
static const char check[] =
	"import json, sys\n"
	"d = json.load(open(sys.argv[1], encoding='utf-8'))\n"
	"n = len(d['shared']['frames'])\n"
	"for p in d['profiles']:\n"
	"    assert len(p['samples']) == len(p['weights'])\n"
	"    assert all(0 <= f < n for s in p['samples'] for f in s)\n"
	"    assert all(w > 0 for w in p['weights'])\n"
	"    assert p['endValue'] == min(sum(p['weights']), 2**63 - 1)\n";

START_TEST(valid_json)
{
	char path[] = "/tmp/wick-speedscope-test-XXXXXX", command[8192];
	struct prng r = prng_new();
	int fd = mkstemp(path);

	for (int i = 0; i < 5; i++) {
		cleanup(profile_cleanup) struct profile *p = random_profile(&r);
		cleanup(buf_cleanup) struct buf b = json_of(p);

		ck_assert_int_eq(ftruncate(fd, 0), 0);
		ck_assert_int_eq(pwrite(fd, b.data, b.len, 0), (ssize_t)b.len);
		snprintf(command, sizeof(command), "python3 -c \"%s\" %s", check, path);
		ck_assert_int_eq(system(command), 0);
	}
	close(fd);
	unlink(path);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("speedscope");
	TCase *t = tcase_create("speedscope");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(t, threads_and_inlined_frames);
	tcase_add_test(t, empty);
	tcase_add_test(t, valid_json);
	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
