/* memory.c - see memory.h. */
#include "proc/memory.h"

#include <fcntl.h>

#include "proc/offload.h"
#include "proc/pid.h"

struct request {
	uint64_t n;
	struct memory_range v[MEMORY_RANGES];
};

_Static_assert(sizeof(struct request) <= OFFLOAD_BYTES, "a request");

/* Piece by piece, in chunks. */
static bool copy_piece(int from, const struct memory_range *m, int into, uint64_t at)
{
	static char chunk[64 << 10];
	size_t part;

	for (uint64_t done = 0; done < m->size; done += part) {
		part = (size_t)MIN(m->size - done, sizeof(chunk));
		if (pread(from, chunk, part, (off_t)(m->start + done)) != (ssize_t)part ||
		    pwrite(into, chunk, part, (off_t)(at + done)) != (ssize_t)part)
			return false;
	}
	return true;
}

/* In the worker. fds: the process, what to write to. */
static int read_there(const void *request, const int *fds, void *reply, int *ret_fd)
{
	const struct request *q = request;
	cleanup(fd_cleanup) int memory = openat(fds[0], "mem", O_RDONLY | O_CLOEXEC);
	bool *ok = reply;
	uint64_t at = 0;

	(void)ret_fd;
	if (memory < 0)
		return -errno;
	for (uint64_t i = 0; i < q->n; at += q->v[i++].size)
		ok[i] = copy_piece(memory, &q->v[i], fds[1], at);
	return 0;
}

int memory_read(int process, const struct memory_range *v, size_t n, int into, bool *ok)
{
	struct request q = { .n = n };
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += v[i].size;
	if (n > MEMORY_RANGES || bytes > MEMORY_BYTES)
		return -E2BIG;
	memcpy(q.v, v, n * sizeof(*v));
	return offload(&(struct offload_call){
		.kind = pid_is_ours(process) ? OFFLOAD_OURS : OFFLOAD_FOREIGN, .fn = read_there,
		.request = &q, .request_size = offsetof(struct request, v) + n * sizeof(*v),
		.fds = { process, into }, .nfds = 2, .reply = ok, .reply_size = n * sizeof(*ok) }, NULL);
}
