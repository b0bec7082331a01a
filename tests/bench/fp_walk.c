/* fp_walk.c - runs fp_walk.bpf.o at the ticks of some processes.
 *
 *	fp_walk fp_walk.bpf.o HZ SECONDS PID...
 *
 * Prints "TICKS NANOSECONDS FRAMES", sums of all ticks. kernel.bpf_stats_enabled must be 1.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <err.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FRAMES_MAX = 127 };	/* as in fp_walk.bpf.c */

static void attach(const struct bpf_program *program, pid_t pid, uint64_t hz)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.size = sizeof(attr),
		.freq = 1,
		.sample_freq = hz,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		err(1, "perf_event_open of %d", (int)pid);
	if (!bpf_program__attach_perf_event(program, fd))
		err(1, "attach to %d", (int)pid);
}

static uint64_t frames(const struct bpf_object *object)
{
	int cpus = libbpf_num_possible_cpus();
	uint32_t zero = 0;
	uint64_t sum = 0;
	struct {
		uint64_t frames;
		uint64_t stack[FRAMES_MAX];
	} *values = calloc(cpus > 0 ? (size_t)cpus : 1, sizeof(*values));

	if (cpus <= 0 || !values ||
	    bpf_map_lookup_elem(bpf_object__find_map_fd_by_name(object, "walks"), &zero, values))
		err(1, "map");
	for (int i = 0; i < cpus; i++)
		sum += values[i].frames;
	free(values);
	return sum;
}

int main(int argc, char **argv)
{
	struct bpf_prog_info info = { 0 };
	uint32_t size = sizeof(info);
	struct bpf_program *program;
	struct bpf_object *object;

	if (argc < 5)
		errx(2, "usage: fp_walk OBJECT HZ SECONDS PID...");
	object = bpf_object__open_file(argv[1], NULL);
	if (!object || bpf_object__load(object))
		err(1, "%s", argv[1]);
	program = bpf_object__find_program_by_name(object, "fp_walk");
	if (!program)
		err(1, "fp_walk");
	for (int i = 4; i < argc; i++)
		attach(program, atoi(argv[i]), strtoull(argv[2], NULL, 10));
	sleep((unsigned int)atoi(argv[3]));
	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size))
		err(1, "statistics");
	printf("%llu %llu %llu\n", (unsigned long long)info.run_cnt,
	       (unsigned long long)info.run_time_ns, (unsigned long long)frames(object));
	bpf_object__close(object);
	return 0;
}
