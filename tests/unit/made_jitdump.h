/* made_jitdump.h - jit-PID.dump files for tests, record by record. */
#ifndef MADE_JITDUMP_H
#define MADE_JITDUMP_H

#include "base/buf.h"

static inline void jd_u32(struct buf *b, uint32_t v)
{
	buf_bytes(b, &v, sizeof(v));
}

static inline void jd_u64(struct buf *b, uint64_t v)
{
	buf_bytes(b, &v, sizeof(v));
}

static inline void jd_header(struct buf *b, uint64_t flags)
{
	jd_u32(b, 0x4A695444);
	jd_u32(b, 1);
	jd_u32(b, 40);
	jd_u32(b, 62);
	jd_u32(b, 0);
	jd_u32(b, 1);
	jd_u64(b, 0);
	jd_u64(b, flags);
}

static inline void jd_record(struct buf *b, uint32_t id, uint32_t body, uint64_t stamp)
{
	jd_u32(b, id);
	jd_u32(b, 16 + body);
	jd_u64(b, stamp);
}

static inline void jd_load(struct buf *b, uint64_t stamp, uint64_t addr, uint64_t size,
			   const char *name)
{
	uint32_t n = (uint32_t)strlen(name) + 1;

	jd_record(b, 0, 40 + n + 4, stamp);
	jd_u32(b, 1);
	jd_u32(b, 1);
	jd_u64(b, addr);
	jd_u64(b, addr);
	jd_u64(b, size);
	jd_u64(b, 7);
	buf_bytes(b, name, n);
	jd_u32(b, 0xcccccccc);	/* some of the code */
}

static inline void jd_move(struct buf *b, uint64_t stamp, uint64_t from, uint64_t to, uint64_t size)
{
	jd_record(b, 1, 48, stamp);
	jd_u32(b, 1);
	jd_u32(b, 1);
	jd_u64(b, to);
	jd_u64(b, from);
	jd_u64(b, to);
	jd_u64(b, size);
	jd_u64(b, 7);
}

struct jd_line {
	uint64_t addr;
	uint32_t line;
	const char *file;
};

static inline void jd_lines(struct buf *b, uint64_t stamp, uint64_t addr, const struct jd_line *v,
			    size_t n)
{
	uint32_t body = 16;

	for (size_t i = 0; i < n; i++)
		body += 16 + (uint32_t)strlen(v[i].file) + 1;
	jd_record(b, 2, body, stamp);
	jd_u64(b, addr);
	jd_u64(b, n);
	for (size_t i = 0; i < n; i++) {
		jd_u64(b, v[i].addr);
		jd_u32(b, v[i].line);
		jd_u32(b, 0);
		buf_bytes(b, v[i].file, strlen(v[i].file) + 1);
	}
}

#endif
