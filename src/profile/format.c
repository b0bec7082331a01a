/* format.c - see format.h. */
#include "profile/format.h"

#include "profile/folded.h"
#include "profile/pprof.h"
#include "profile/report.h"
#include "profile/speedscope.h"

enum { TEXT_ROWS = 30 };

const char *const format_names[] = { "auto", "pb.gz", "pb", "folded", "speedscope", "txt", NULL };

static const struct {
	const char *ending;
	enum format format;
} endings[] = {
	{ ".pb.gz", FORMAT_PPROF_GZ },
	{ ".pb", FORMAT_PPROF },
	{ ".folded", FORMAT_FOLDED },
	{ ".speedscope.json", FORMAT_SPEEDSCOPE },
	{ ".txt", FORMAT_TEXT },
};

int format_from_path(const char *path, enum format *ret, struct err *e)
{
	const size_t n = strlen(path);

	if (!strcmp(path, "-") || !strncmp(path, "/dev/", strlen("/dev/"))) {
		*ret = FORMAT_PPROF_GZ;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
		const size_t len = strlen(endings[i].ending);

		if (n >= len && !strcmp(path + n - len, endings[i].ending)) {
			*ret = endings[i].format;
			return 0;
		}
	}
	return err_set(e, -EINVAL, "'%.200s' ends in none of .pb.gz .pb .folded .speedscope.json "
		       ".txt: rename it, or say which with --format", path);
}

int format_write(const struct profile *p, enum format format, struct buf *out)
{
	switch (format) {
	case FORMAT_PPROF_GZ:
	case FORMAT_PPROF:
		return pprof_write(p, format == FORMAT_PPROF_GZ, out);
	case FORMAT_FOLDED:
		return folded_write(p, out);
	case FORMAT_SPEEDSCOPE:
		return speedscope_write(p, out);
	case FORMAT_TEXT:
		return report_write(p, &(struct report_options){ .limit = TEXT_ROWS }, out, NULL);
	case FORMAT_AUTO:
		break;
	}
	return -EINVAL;
}
