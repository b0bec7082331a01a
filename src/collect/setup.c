/* setup.c - see setup.h. */
#include "collect/setup.h"

#include <pthread.h>

#include "proc/host.h"

static void find_range(const struct kallsyms *k, const char *start, const char *end,
		       struct wk_range *ret)
{
	uint64_t a, b;

	if (!kallsyms_find(k, start, &a) || !kallsyms_find(k, end, &b))
		return;
	ret->start = a;
	ret->end = b;
}

int setup_kallsyms(struct kallsyms **ret)
{
	static const char *const marks[] = { "__irqentry_text_start", "__irqentry_text_end",
					     "__softirqentry_text_start", "__softirqentry_text_end",
					     "_stext", "_text", NULL };

	return kallsyms_load("/proc/kallsyms", marks, ret, NULL);
}

static bool has_unknown(const struct kallsyms *k, const struct samples *s, uint32_t stack)
{
	struct kallsym sym;

	for (size_t f = 0; f < samples_depth(s, stack); f++) {
		uint64_t frame = samples_frame(s, stack, f);

		if (!WK_FRAME_IS_KERNEL(frame))	/* kernel frames come first */
			return false;
		if (!kallsyms_lookup(k, frame, &sym))
			return true;
	}
	return false;
}

bool setup_kallsyms_stale(const struct kallsyms *k, const struct samples *s)
{
	for (uint32_t i = 0; k && i < strtab_count(&s->stacks); i++)
		if (has_unknown(k, s, i))
			return true;
	return false;
}

static void *read_symbols(void *arg)
{
	struct kallsyms **ret = arg;

	if (setup_kallsyms(ret))
		*ret = NULL;
	return NULL;
}

int setup_recorder(bool unsafe_kernel, struct sampler_options *so, const struct recorder_options *ro,
		   struct recorder **ret, struct kallsyms **ret_kallsyms, struct err *e)
{
	struct kallsyms *k = NULL;
	pthread_t reader;
	struct host h;
	bool threaded;
	int r;

	if (!host_read("", &h) && host_kernel_is_bad(&h) && !unsafe_kernel)
		return err_set(e, -ENOTSUP, "kernel %s can freeze when user stacks are sampled; update "
					    "it, or take the risk with --unsafe-kernel", h.release);
	threaded = !pthread_create(&reader, NULL, read_symbols, &k);
	r = recorder_new(so, ro, ret, e);
	if (threaded)
		pthread_join(reader, NULL);
	else
		read_symbols(&k);
	if (r) {
		kallsyms_free(k);
		return r;
	}
	if (k) {
		find_range(k, "__irqentry_text_start", "__irqentry_text_end", &so->marks.irq_text);
		find_range(k, "__softirqentry_text_start", "__softirqentry_text_end",
			   &so->marks.softirq_text);
		sampler_set_marks((*ret)->sampler, &so->marks);
	}
	*ret_kallsyms = k;
	return 0;
}
