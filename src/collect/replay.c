/* replay.c - see replay.h. step.h and rows.h read memory through three macros: the copied stack and
 * code of the capture at hand, and the words of a table. */
#include "collect/replay.h"

struct memory {			/* the capture at hand; per thread, as step.h takes no context */
	uint64_t start;
	const uint8_t *bytes;
	size_t size;
	uint32_t missing;	/* chunks, as in struct wk_capture */
	const struct wk_capture_code *code;
};
static __thread struct memory stack;

static int read_stack(void *dst, size_t n, uint64_t addr)
{
	if (addr < stack.start || addr - stack.start > stack.size ||
	    n > stack.size - (addr - stack.start))
		return -1;
	for (size_t i = (addr - stack.start) / WK_CAPTURE_CHUNK;
	     i <= (addr - stack.start + n - 1) / WK_CAPTURE_CHUNK; i++)
		if (stack.missing & 1u << i)
			return -1;
	memcpy(dst, stack.bytes + (addr - stack.start), n);
	return 0;
}

/* Only what BPF thought of: the leaf's. */
static int read_code(void *dst, size_t n, uint64_t addr)
{
	for (size_t i = 0; i < WK_CAPTURE_CODE; i++)
		if (stack.code[i].addr == addr && addr && n <= sizeof(stack.code[i].bytes)) {
			memcpy(dst, stack.code[i].bytes, n);
			return 0;
		}
	return -1;
}

static int read_word(const struct replay_rows *rows, __u64 n, __u64 *ret)
{
	if (n >= rows->n)
		return -1;
	*ret = rows->words[n];
	return 0;
}

#define WK_READ_USER(dst, len, addr)	read_stack(dst, len, addr)
#define WK_READ_CODE(dst, len, addr)	read_code(dst, len, addr)
#define WK_ROW_WORD(words, n, dst)	read_word(words, n, dst)
#include "rows.h"
#include "step.h"

static const struct wk_capture_vma *find_vma(const struct wk_capture *c, uint64_t addr)
{
	for (uint32_t i = 0; i < c->nr_vmas; i++)
		if (addr >= c->vmas[i].start && addr < c->vmas[i].end)
			return &c->vmas[i];
	return NULL;
}

/* A signal trampoline's *frame is put right: nobody called it, so its address isn't a return address. */
static uint32_t step(struct wk_regs *regs, const struct replay_rows *rows, uint64_t *frame)
{
	bool is_file = WK_FRAME_TAG(*frame) == WK_FRAME_FILE;
	uint64_t offset = is_file ? WK_FRAME_FILE_OFF(*frame) : *frame;
	struct wk_side side = { 0 };
	struct wk_row row = { 0 };
	bool found = rows->state == WK_ROWS_HERE && rows->words &&
		     !wk_rows_find(&rows->table, rows, offset, &row);

	if (found && row.cfa == WK_CFA_SIDE && wk_rows_side(&rows->table, rows, row, &side))
		return WK_USER_INTERNAL;
	*frame += row.cfa == WK_CFA_SIGNAL && !regs->leaf;
	return wk_find_caller(regs, found, row, &side);
}

static void load_registers(const struct wk_capture *c, struct wk_regs *ret)
{
	*ret = (struct wk_regs){
		.pc = c->regs[0],
		.sp = c->regs[1],
		.fp = c->regs[2],
		.lr = c->regs[3],
		.exact = c->exact,
		.leaf = c->leaf,
		.kept = c->kept,
		.chained = c->chained,
		.guessed = c->guessed,
		.bx_at = c->bx_at,
	};
	memcpy(ret->general, &c->regs[4],
	       MIN(sizeof(ret->general), sizeof(c->regs) - 4 * sizeof(c->regs[0])));
	stack = (struct memory){ .start = c->stack_start, .bytes = c->stack, .size = c->stack_bytes,
				 .missing = c->missing, .code = c->code };
}

int replay(const struct wk_capture *c, replay_source *source, void *ctx, bool final,
	   struct replay_walk *ret)
{
	struct wk_regs regs;
	uint32_t outcome = 0;

	load_registers(c, &regs);
	memcpy(ret->frames, c->user, c->nr_user * sizeof(c->user[0]));
	ret->n = c->nr_user;
	while (!outcome && ret->n < REPLAY_FRAMES) {
		struct replay_rows rows = { .state = WK_ROWS_NONE };
		uint64_t addr = regs.pc - !regs.exact, frame;
		const struct wk_capture_vma *v = find_vma(c, addr);

		if (!v) {
			outcome = WK_USER_NO_MAPPING;
			break;
		}
		frame = v->frame + (addr - v->start);
		if (WK_FRAME_TAG(frame) == WK_FRAME_FILE)
			rows = source(ctx, WK_FRAME_FILE_ID(frame));
		if (rows.state == WK_ROWS_COMING && !final) {
			ret->missing = WK_FRAME_FILE_ID(frame);
			return -EAGAIN;
		}
		if (rows.state == WK_ROWS_ANON)
			frame = addr;
		if (WK_FRAME_TAG(frame) == WK_FRAME_RAW)
			rows = source(ctx, WK_FILE_NONE);
		outcome = step(&regs, &rows, &frame);
		ret->frames[ret->n++] = frame;
	}
	ret->outcome = outcome ? outcome : WK_USER_DEPTH;
	return 0;
}
