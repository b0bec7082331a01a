/* Tests of symbol/vmlinux.h: the running kernel's file, moved by KASLR, and all that isn't it. */
#include "lines_corpus.h"

#include <sys/stat.h>

#include "symbol/vmlinux.h"

static const char own[] = "\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20\21\22\23\24";
static char dir[64], notes[96], path[96];

static void set_up(const char *id, size_t n)
{
	struct {
		Elf64_Nhdr other;
		char other_name[4], version[4];
		Elf64_Nhdr h;
		char name[4], id[64];
	} raw = { { 4, 4, 257 }, "Xen", "4", { 4, (uint32_t)n, NT_GNU_BUILD_ID }, "GNU", "" };
	int fd;

	memcpy(raw.id, id, n);
	strcpy(dir, "/tmp/vmlinux_test.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(notes, sizeof(notes), "%s/notes", dir);
	snprintf(path, sizeof(path), "%s/vmlinux", dir);
	fd = open(notes, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_eq(write(fd, &raw, sizeof(raw)), sizeof(raw));
	close(fd);
}

static void tear_down(void)
{
	unlink(notes);
	unlink(path);
	rmdir(dir);
}

static struct kallsyms *parsed(const char *text)
{
	static const char *const extra[] = { "_stext", "_text", NULL };
	struct kallsyms *k = NULL;

	ck_assert_int_eq(kallsyms_parse(text, strlen(text), extra, &k, NULL), 0);
	return k;
}

static const char moved[] = "ffffffffa1000000 T _stext\nffffffffa1000000 T _text\n"
			    "ffffffffa1000010 t h\nffffffffa1000100 T _etext\n";

static int open_it(const char *file, const char *kallsyms, struct vmlinux **ret, struct err *e)
{
	cleanup(kallsyms_cleanup) struct kallsyms *k = kallsyms ? parsed(kallsyms) : NULL;

	return vmlinux_open(file, notes, k, ret, e);
}

static void refused(const char *file, const char *kallsyms, int r, const char *words)
{
	struct vmlinux *v = NULL;
	struct err e = { "" };

	ck_assert_int_eq(open_it(file, kallsyms, &v, &e), r);
	ck_assert_ptr_null(v);
	ck_assert_msg(strstr(e.msg, words), "'%s' doesn't say '%s'", e.msg, words);
}

START_TEST(moved_by_kaslr)
{
	cleanup(vmlinux_cleanup) struct vmlinux *v = NULL;
	uint64_t vaddr = 1;
	int fd;

	set_up(own, 20);
	ck_assert_int_eq(open_it(CORPUS "vmlinux", moved, &v, NULL), 0);
	ck_assert(vmlinux_address(v, 0xffffffffa1000017, &vaddr));
	ck_assert_uint_eq(vaddr, 0xffffffff81000017);
	ck_assert(!vmlinux_address(v, 0xffffffff81000017, &vaddr));
	ck_assert(!vmlinux_address(v, 0xffffffffa0ffffff, &vaddr));
	ck_assert(!vmlinux_address(v, 0x17, &vaddr));
	ck_assert_str_eq(vmlinux_path(v), CORPUS "vmlinux");
	fd = vmlinux_dup(v);
	ck_assert_int_ge(fd, 0);
	close(fd);
	tear_down();
}
END_TEST

START_TEST(not_moved)
{
	cleanup(vmlinux_cleanup) struct vmlinux *v = NULL;
	uint64_t vaddr = 1;

	set_up(own, 20);	/* one mark is enough */
	ck_assert_int_eq(open_it(CORPUS "vmlinux", "ffffffff81000000 T _text\n", &v, NULL), 0);
	ck_assert(vmlinux_address(v, 0xffffffff81000017, &vaddr));
	ck_assert_uint_eq(vaddr, 0xffffffff81000017);
	tear_down();
}
END_TEST

START_TEST(another_kernel)
{
	set_up("12345678901234567890", 20);
	refused(CORPUS "vmlinux", moved, -ESTALE, "0102030405060708090a0b0c0d0e0f1011121314, the running one's 3132");
	tear_down();
	set_up(own, 19);	/* its beginning isn't enough */
	refused(CORPUS "vmlinux", moved, -ESTALE, "another kernel");
	tear_down();
	set_up(own, 0);
	refused(CORPUS "vmlinux", moved, -ENODATA, "build id can't be read");
	unlink(notes);
	refused(CORPUS "vmlinux", moved, -ENOENT, "build id can't be read");
	tear_down();
}
END_TEST

START_TEST(it_does_not_fit)
{
	set_up(own, 20);
	refused(CORPUS "vmlinux", NULL, -EPERM, "CAP_SYSLOG");
	refused(CORPUS "vmlinux", "ffffffffa1000010 t h\n", -ENODATA, "_stext");
	refused(CORPUS "vmlinux", "ffffffffa1000000 T _stext\nffffffffa1200000 T _text\n", -ESTALE,
		"doesn't fit");
	refused(CORPUS "vmlinux", "ffffffffa1000010 T _stext\n", -ESTALE, "doesn't fit");
	tear_down();
}
END_TEST

/* A file with some of what it takes; sections: .debug_info. */
static void make(bool debug, bool id, uint16_t type)
{
	struct made *m cleanup(freep_cleanup) = made_new(EM_X86_64);
	size_t text = made_section(m, ".text", SHT_PROGBITS, SHF_EXECINSTR, NULL, 64);

	m->h.e_type = type;
	if (debug)
		made_section(m, ".debug_info", SHT_PROGBITS, 0, "x", 1);
	if (id)
		made_build_id(m, own, 20);
	made_symbols(m, SHT_SYMTAB, (uint16_t)text, m->s[text].sh_addr, (const char *const[]){ "f", NULL });
	made_write(m, path);
}

START_TEST(no_kernel)
{
	set_up(own, 20);
	refused("/nonexistent/vmlinux", moved, -ENOENT, "No such file");
	refused("/dev/null", moved, -EINVAL, "not a regular file");
	refused(notes, moved, -ENOEXEC, "not an ELF file");
	refused(CORPUS "c-5", moved, -ENODATA, "no build id");
	make(false, true, ET_EXEC);
	refused(path, moved, -ENODATA, "no debug information");
	make(true, true, ET_REL);
	refused(path, moved, -ENODATA, "no linked kernel");
	make(true, true, ET_EXEC);
	refused(path, moved, -ENODATA, "no symbol _stext");
	unlink(path);
	ck_assert_int_eq(mkfifo(path, 0600), 0);	/* opening it would wait for ever */
	refused(path, moved, -EINVAL, "not a regular file");
	tear_down();
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { moved_by_kaslr, not_moved, another_kernel, it_does_not_fit,
				       no_kernel };

	return made_run("vmlinux", tests, ARRAY_SIZE(tests));
}
