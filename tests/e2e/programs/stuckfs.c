/* stuckfs DIRECTORY FILE SERVE [NAME] - a file system in which one file lies, a copy of FILE called NAME ("program"),
 * and which stops answering when the file is read beyond its first SERVE bytes, for good: FUSE's own protocol over
 * /dev/fuse (linux/fuse.h), with no library. Prints a line when it is mounted; a line on its input makes it answer
 * nothing at all, and the end of its input ends it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_NODE = 2, REQUEST_MAX = 1 << 20 };

static char *content;
static size_t size, serve;
static const char *name = "program";
static int fuse;

static void answer(const struct fuse_in_header *in, int error, const void *data, size_t n)
{
	static char buffer[REQUEST_MAX + sizeof(struct fuse_out_header)];
	struct fuse_out_header *out = (struct fuse_out_header *)buffer;

	*out = (struct fuse_out_header){ .len = (uint32_t)(sizeof(*out) + n), .error = -error, .unique = in->unique };
	memcpy(buffer + sizeof(*out), data, n);
	if (write(fuse, buffer, out->len) < 0 && errno != ENOENT)
		perror("stuckfs: write");
}

static struct fuse_attr attributes(uint64_t node)
{
	return (struct fuse_attr){
		.ino = node,
		.size = node == FILE_NODE ? size : 0,
		.blocks = (size + 511) / 512,
		.mtime = 1700000000,
		.mode = node == FILE_NODE ? S_IFREG | 0755 : S_IFDIR | 0755,
		.nlink = 1,
		.blksize = 4096,
	};
}

static void handle(const struct fuse_in_header *in)
{
	const char *body = (const char *)(in + 1);

	switch (in->opcode) {
	case FUSE_INIT: {
		struct fuse_init_out out = { .major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 65536,
					     .max_background = 16, .congestion_threshold = 12 };

		answer(in, 0, &out, sizeof(out));
		break;
	}
	case FUSE_LOOKUP: {
		struct fuse_entry_out out = { .nodeid = FILE_NODE, .generation = 1, .attr = attributes(FILE_NODE) };

		answer(in, strcmp(body, name) ? ENOENT : 0, &out, strcmp(body, name) ? 0 : sizeof(out));
		break;
	}
	case FUSE_GETATTR: {
		struct fuse_attr_out out = { .attr = attributes(in->nodeid) };	/* valid for no time */

		answer(in, 0, &out, sizeof(out));
		break;
	}
	case FUSE_OPEN:
	case FUSE_OPENDIR: {
		struct fuse_open_out out = { .open_flags = FOPEN_KEEP_CACHE };

		answer(in, 0, &out, sizeof(out));
		break;
	}
	case FUSE_READ: {
		const struct fuse_read_in *read = (const struct fuse_read_in *)body;
		size_t n = read->offset < size ? size - read->offset : 0;

		n = n < read->size ? n : read->size;
		/* pages come one by one, as there is no reading ahead */
		if (read->offset + n <= serve || !n)
			answer(in, 0, content + read->offset, n);
		break;
	}
	case FUSE_STATFS: {
		struct fuse_statfs_out out = { .st = { .bsize = 4096, .namelen = 255 } };

		answer(in, 0, &out, sizeof(out));
		break;
	}
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		answer(in, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		answer(in, ENOSYS, NULL, 0);
	}
}

static int load(const char *path)
{
	FILE *f = fopen(path, "re");

	if (!f || fseek(f, 0, SEEK_END) || (size = (size_t)ftell(f)) == 0)
		return -1;
	rewind(f);
	content = malloc(size);
	return fread(content, 1, size, f) == size ? fclose(f) : -1;
}

int main(int argc, char **argv)
{
	static _Alignas(16) char request[REQUEST_MAX + 4096];
	struct pollfd p[2];
	char options[128], line[64];

	if (argc < 4 || load(argv[2]))
		return 2;
	serve = strtoull(argv[3], NULL, 0);
	if (argc > 4)
		name = argv[4];
	fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fuse);
	if (fuse < 0 || mount("stuckfs", argv[1], "fuse.stuckfs", 0, options)) {
		perror("stuckfs: mount");
		return 1;
	}
	puts("mounted");
	fflush(stdout);
	p[0] = (struct pollfd){ .fd = fuse, .events = POLLIN };
	p[1] = (struct pollfd){ .fd = 0, .events = POLLIN };
	while (poll(p, 2, -1) > 0) {
		if (p[1].revents) {
			if (read(0, line, sizeof(line)) <= 0)
				break;
			p[0].fd = -1;	/* from here on nobody gets an answer */
			puts("silent");
			fflush(stdout);
		}
		if (p[0].fd >= 0 && p[0].revents) {
			if (read(fuse, request, sizeof(request)) <= 0 && errno != ENOENT && errno != EINTR &&
			    errno != EAGAIN)
				break;
			handle((const struct fuse_in_header *)request);
		}
	}
	umount2(argv[1], MNT_DETACH);
	return 0;
}
