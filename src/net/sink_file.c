/* sink_file.c - a directory of .pb.gz files, the oldest removed when it is over its bytes or age.
 *
 * A file is named by its time and labels, so that names sort by time and a glob finds a service:
 *	20261201T043500.000000000Z,service_name=api,namespace=shop,process_cpu-1f2e3d4c.pb.gz
 * What file names can't hold is '_' there and labels may be cut; the checksum at the end is over all of
 * them and tells series apart. Files appear under their names whole: they are written as a hidden one
 * and renamed. They aren't synced: a power cut may cost the last ones, kill -9 none. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <zlib.h>

#include "net/protocol.h"

#define SUFFIX	".pb.gz"
#define LOOK_NS 3600000000000LL	/* the directory is looked through as often, for ages */

enum { NAME_LEN = 224, TIME_LEN = 26 };

static int64_t realtime_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* ---- names ---- */

static void format_time(int64_t nanos, char ret[static 40])
{
	time_t seconds = (time_t)(nanos / 1000000000);
	struct tm tm;
	size_t n;

	gmtime_r(&seconds, &tm);
	n = strftime(ret, 40, "%Y%m%dT%H%M%S", &tm);
	snprintf(ret + n, 40 - n, ".%09ldZ", (long)(nanos % 1000000000));
}

static void put_clean(struct buf *b, const char *s)
{
	for (; *s; s++)
		buf_char(b, (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
				    (*s >= '0' && *s <= '9') || strchr("._-+=", *s)
				    ? *s : '_');
}

static void put_label(struct buf *b, const char *name, const char *value)
{
	buf_char(b, ',');
	put_clean(b, name);
	buf_char(b, '=');
	put_clean(b, value);
}

static int make_name(const struct item *it, char **ret)
{
	cleanup(buf_cleanup) struct buf name = BUF_INIT(1 << 20), all = BUF_INIT(1 << 20);
	const char *value = labels_get(&it->labels, LABELS_SERVICE);
	char time[40];
	uLong crc;

	format_time(it->time_nanos, time);
	buf_str(&name, time);
	if (value)
		put_label(&name, LABELS_SERVICE, value);
	for (size_t i = 0; i < it->labels.n; i++)
		if (strcmp(it->labels.v[i].name, LABELS_SERVICE))
			put_label(&name, it->labels.v[i].name, it->labels.v[i].value);
	labels_text(&it->labels, &all);
	buf_str(&all, it->type);
	if (name.err || all.err)
		return -ENOMEM;
	crc = crc32(0, (const Bytef *)all.data, (uInt)all.len);
	return asprintf(ret, "%.*s,%.16s-%08lx" SUFFIX, NAME_LEN - 40, name.data, it->type, crc) < 0
		       ? -ENOMEM
		       : 0;
}

/* Whether it is a file of ours, by its name. */
static bool is_ours(const char *name)
{
	static const char shape[] = "00000000T000000.000000000Z,";
	size_t n = strlen(name);

	_Static_assert(sizeof(shape) == TIME_LEN + 2, "a time and a comma");
	for (size_t i = 0; shape[i]; i++)
		if (shape[i] == '0' ? name[i] < '0' || name[i] > '9' : name[i] != shape[i])
			return false;
	return n > strlen(SUFFIX) && !strcmp(name + n - strlen(SUFFIX), SUFFIX);
}

/* ---- retention ---- */

static int only_ours(const struct dirent *de)
{
	return is_ours(de->d_name);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static uint64_t size_of(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? 0 : (uint64_t)st.st_size;
}

/* Removes the oldest while they are too old or there is too much: a tenth more than that, so that the
 * next file doesn't make us look again. */
static void remove_oldest(struct file_sink *f, int dir, struct dirent **found, int n, int64_t now)
{
	const uint64_t keep = f->max_bytes - f->max_bytes / 10;
	const bool over = f->max_bytes && f->bytes > f->max_bytes;
	char limit[40] = "";

	if (f->max_age_ns && (int64_t)f->max_age_ns < now)
		format_time(now - (int64_t)f->max_age_ns, limit);
	for (int i = 0; i < n; i++) {
		const char *name = found[i]->d_name;
		uint64_t size = size_of(dir, name);

		if (strncmp(name, limit, strlen(limit)) >= 0 && !(over && f->bytes > keep))
			return;
		if (!unlinkat(dir, name, 0))
			f->bytes -= MIN(size, f->bytes);
	}
}

static void look_through(struct file_sink *f, int dir, int64_t now)
{
	struct dirent **found = NULL;
	int n = scandirat(dir, ".", &found, only_ours, by_name);

	f->looked_ns = now;
	if (n < 0)
		return;
	f->bytes = 0;
	for (int i = 0; i < n; i++)
		f->bytes += size_of(dir, found[i]->d_name);
	remove_oldest(f, dir, found, n, now);
	for (int i = 0; i < n; i++)
		free(found[i]);
	free(found);
}

static void retain(struct file_sink *f, int dir, size_t added)
{
	const int64_t now = realtime_ns();

	if (!f->max_bytes && !f->max_age_ns)
		return;
	f->bytes += added;
	if (!f->looked_ns || now - f->looked_ns > LOOK_NS ||
	    (f->max_bytes && f->bytes > f->max_bytes))
		look_through(f, dir, now);
}

/* ---- storing ---- */

static int write_file(int dir, const char *name, const struct item *it)
{
	char tmp[64];
	int fd, r;

	snprintf(tmp, sizeof(tmp), ".wick-%d.tmp", (int)getpid());
	fd = openat(dir, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return -errno;
	r = write_all(fd, it->pprof, it->len);
	if (close(fd) < 0 && !r)	/* network file systems report a full disk here */
		r = -errno;
	if (!r && renameat(dir, tmp, dir, name) < 0)
		r = -errno;
	if (r)
		unlinkat(dir, tmp, 0);
	return r;
}

static int store_item(struct sink *s, const struct item *it)
{
	cleanup(freep_cleanup) char *name = NULL;
	cleanup(fd_cleanup) int dir = -1;
	int r = make_name(it, &name);

	if (r)
		return r;
	if (mkdir(s->file.dir, 0755) < 0 && errno != EEXIST)
		return -errno;
	dir = open(s->file.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	r = write_file(dir, name, it);
	if (!r)
		retain(&s->file, dir, it->len);
	return r;
}

/* Whatever keeps a file from being written may be mended: a full disk, a directory that isn't mounted. */
static void store(struct sink *s, const struct item *it, struct sink_verdict *ret)
{
	int r = store_item(s, it);

	if (!r)
		return;
	ret->fate = SINK_LATER;
	ret->err = r;
	err_set(&ret->why, r, "can't write to %.200s: %s", s->file.dir, strerror(-r));
}

const struct protocol protocol_file = {
	.name = "file",
	.transport = TRANSPORT_FILE,
	.product = "directory",
	.store = store,
};
