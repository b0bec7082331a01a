/* Tests of symbol/splitdwarf.h: the .dwo and .dwp beside an executable, and those of other ones. */
#include "lines_corpus.h"

#include <sys/stat.h>

#include "symbol/splitdwarf.h"

struct skeleton {
	struct corpus c;
	struct dwarfimage *image;
	Elf *elf;
	Dwarf *dwarf;
	Dwarf_Die unit;
};

static struct skeleton skeleton_open(const char *name)
{
	struct skeleton s = { .c = corpus_open(name) };
	Dwarf_Off next;
	size_t size, header;
	char *bytes;

	ck_assert_int_eq(dwarfimage_new(s.c.e, 1 << 20, &s.image), 0);
	ck_assert_int_eq(dwarfimage_need(s.image, 0, UINT64_MAX), 0);
	bytes = dwarfimage_bytes(s.image, &size);
	elf_version(EV_CURRENT);
	s.elf = elf_memory(bytes, size);
	s.dwarf = dwarf_begin_elf(s.elf, DWARF_C_READ, NULL);
	ck_assert_ptr_nonnull(s.dwarf);
	ck_assert_int_eq(dwarf_nextcu(s.dwarf, 0, &next, &header, NULL, NULL, NULL), 0);
	ck_assert_ptr_nonnull(dwarf_offdie(s.dwarf, header, &s.unit));
	return s;
}

static void skeleton_close(struct skeleton *s)
{
	dwarf_end(s->dwarf);
	elf_end(s->elf);
	dwarfimage_free(s->image);
	corpus_close(&s->c);
}

static void copy(const char *from, const char *to, size_t flip)
{
	uint8_t bytes[8192];
	int in = open(from, O_RDONLY | O_CLOEXEC), out;
	ssize_t n = read(in, bytes, sizeof(bytes));

	ck_assert_int_gt(n, 0);
	if (flip)
		bytes[flip] ^= 1;
	out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert_int_eq(write(out, bytes, (size_t)n), n);
	close(in);
	close(out);
}

START_TEST(beside_it)
{
	struct skeleton k cleanup(skeleton_close) = skeleton_open("split");
	char *path cleanup(freep_cleanup) = realpath(CORPUS "split", NULL);
	struct splitdwarf_options o = { .path = path, .process = -1, .image = k.image,
					.max = 1 << 20 };
	struct splitdwarf *s cleanup(splitdwarf_cleanup) = NULL;
	Dwarf_Die unit, child;

	ck_assert(splitdwarf_is_skeleton(&k.unit));
	ck_assert_int_eq(splitdwarf_open(&o, &k.unit, &s), 0);
	ck_assert_ptr_nonnull(dwarf_offdie(splitdwarf_dwarf(s), splitdwarf_unit(s), &unit));
	ck_assert_int_eq(dwarf_child(&unit, &child), 0);
	ck_assert_uint_gt(splitdwarf_memory(s), 500);
}
END_TEST

START_TEST(not_there_or_another)
{
	struct skeleton k cleanup(skeleton_close) = skeleton_open("split");
	char dir[] = "/tmp/splitdwarf-XXXXXX", path[64], dwo[64];
	struct splitdwarf_options o = { .path = path, .process = -1, .image = k.image,
					.max = 1 << 20 };
	const struct elf_section *info;
	struct splitdwarf *s = NULL;
	struct corpus c cleanup(corpus_close) = corpus_open("split-a.dwo");

	info = elf_section_by_name(c.e, ".debug_info.dwo");
	ck_assert_ptr_nonnull(info);
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/split", dir);
	snprintf(dwo, sizeof(dwo), "%s/split-a.dwo", dir);
	ck_assert_int_eq(splitdwarf_open(&o, &k.unit, &s), -ENOENT);
	copy(CORPUS "split-a.dwo", dwo, info->offset + 12);	/* the id: DWARF 5 section 7.5.1.2 */
	ck_assert_int_eq(splitdwarf_open(&o, &k.unit, &s), -ESTALE);
	ck_assert_int_eq(unlink(dwo), 0);
	ck_assert_int_eq(mkfifo(dwo, 0600), 0);	/* opening it would wait for ever */
	ck_assert_int_eq(splitdwarf_open(&o, &k.unit, &s), -EINVAL);
	o.path = NULL;
	ck_assert_int_eq(splitdwarf_open(&o, &k.unit, &s), -ENOENT);
	unlink(dwo);
	rmdir(dir);
}
END_TEST

/* Beneath a root that isn't ours, which is all that "/proc/PID" is asked for. */
START_TEST(in_a_container)
{
	struct skeleton k cleanup(skeleton_close) = skeleton_open("split");
	char dir[] = "/tmp/splitdwarf-XXXXXX", dwo[160], other[128], bin[128],
	     root[64];
	char *outside cleanup(freep_cleanup) = realpath(CORPUS "split-a.dwo", NULL);
	struct splitdwarf_options o = { .path = "/bin/split", .image = k.image, .max = 1 << 20 };
	struct splitdwarf *s = NULL;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(root, sizeof(root), "%s/root", dir);
	snprintf(bin, sizeof(bin), "%s/bin", root);
	snprintf(dwo, sizeof(dwo), "%s/split-a.dwo", bin);
	snprintf(other, sizeof(other), "%s/other", root);
	ck_assert(!mkdir(root, 0700) && !mkdir(bin, 0700));
	o.process = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(splitdwarf_open(&o, &k.unit, &s), -ENOENT);
	ck_assert_int_eq(symlink(outside, dwo), 0);	/* leads nowhere in there */
	ck_assert_int_eq(splitdwarf_open(&o, &k.unit, &s), -ENOENT);
	copy(CORPUS "split-a.dwo", other, 0);
	unlink(dwo);
	ck_assert_int_eq(symlink("../../../../other", dwo), 0);	/* not above the root */
	ck_assert_int_eq(splitdwarf_open(&o, &k.unit, &s), 0);
	splitdwarf_free(s);
	unlink(dwo);
	ck_assert_int_eq(rename(other, dwo), 0);
	ck_assert_int_eq(splitdwarf_open(&o, &k.unit, &s), 0);
	splitdwarf_free(s);
	unlink(dwo);
	ck_assert_int_eq(mkfifo(dwo, 0600), 0);
	ck_assert_int_ne(splitdwarf_open(&o, &k.unit, &s), 0);
	unlink(dwo);
	close(o.process);
	ck_assert(!rmdir(bin) && !rmdir(root) && !rmdir(dir));
}
END_TEST

START_TEST(whole_units_are_no_skeletons)
{
	struct skeleton k cleanup(skeleton_close) = skeleton_open("c-5");

	ck_assert(!splitdwarf_is_skeleton(&k.unit));
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { beside_it, not_there_or_another, in_a_container,
				       whole_units_are_no_skeletons };

	return made_run("splitdwarf", tests, ARRAY_SIZE(tests));
}
