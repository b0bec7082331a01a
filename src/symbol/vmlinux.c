/* vmlinux.c - see vmlinux.h. */
#include "symbol/vmlinux.h"

#include <elf.h>
#include <fcntl.h>

#include "elf/dynsym.h"
#include "proc/host.h"
#include "symbol/fileopen.h"

#define PAGE 4096	/* the smallest one: kernels lie at multiples of more */

struct vmlinux {
	int fd;
	struct elf *elf;
	uint64_t offset;	/* modulo 2^64: of running, to be taken off */
	char *path;
};

struct id {
	unsigned char bytes[ELF_BUILD_ID_MAX];
	size_t n;
};

/* ---- whether it is this kernel's ---- */

static int running_id(const char *notes, struct id *ret)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(VMLINUX_NOTES_MAX);
	struct elf_note n;
	size_t pos = 0;
	int r = host_read_file("", notes, &b);

	if (r)
		return r;
	while (elf_note_next(b.data, b.len, 4, &pos, &n)) {
		if (n.type != NT_GNU_BUILD_ID || n.name_size != 4 || memcmp(n.name, "GNU", 4) ||
		    !n.desc_size || n.desc_size > sizeof(ret->bytes))
			continue;
		memcpy(ret->bytes, n.desc, n.desc_size);
		ret->n = n.desc_size;
		return 0;
	}
	return -ENODATA;
}

static int check_id(const struct vmlinux *v, const char *notes, struct err *e)
{
	char here[ELF_BUILD_ID_HEX], there[ELF_BUILD_ID_HEX];
	struct id running, file;
	int r = running_id(notes, &running);

	if (r)
		return err_set(e, r, "the running kernel's build id can't be read from %s: %s", notes,
			       strerror(-r));
	if (elf_build_id(v->elf, file.bytes, &file.n))
		return err_set(e, -ENODATA, "%.200s has no build id: nothing proves that it is the running "
					    "kernel's", v->path);
	if (file.n == running.n && !memcmp(file.bytes, running.bytes, file.n))
		return 0;
	elf_build_id_hex(file.bytes, file.n, there);
	elf_build_id_hex(running.bytes, running.n, here);
	return err_set(e, -ESTALE, "%.200s is of another kernel: its build id is %s, the running one's %s",
		       v->path, there, here);
}

static int check_content(const struct vmlinux *v, struct err *e)
{
	const struct elf_section *s = elf_section_by_name(v->elf, ".debug_info");

	if (elf_type(v->elf) == ET_REL)
		return err_set(e, -ENODATA, "%.200s is no linked kernel", v->path);
	if (!s || s->type == SHT_NOBITS)
		return err_set(e, -ENODATA, "%.200s has no debug information", v->path);
	return 0;
}

/* ---- where it runs ---- */

static int find_offset(struct vmlinux *v, const struct kallsyms *k, struct err *e)
{
	static const char *const marks[] = { "_stext", "_text" };
	uint64_t here, there;
	bool found = false;

	if (!k)
		return err_set(e, -EPERM, "/proc/kallsyms shows no addresses, so nothing tells where the kernel "
					  "of %.200s runs: CAP_SYSLOG, or sysctl kernel.kptr_restrict=1",
			       v->path);
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		if (!kallsyms_find(k, marks[i], &here) ||
		    elf_symbol_value(v->elf, SHT_SYMTAB, marks[i], &there))
			continue;
		if ((found && v->offset != here - there) || (here - there) % PAGE)
			return err_set(e, -ESTALE, "%.200s doesn't fit to /proc/kallsyms: %s is at %#llx "
						   "there and at %#llx here", v->path, marks[i],
				       (unsigned long long)there, (unsigned long long)here);
		v->offset = here - there;
		found = true;
	}
	return found ? 0 : err_set(e, -ENODATA, "%.200s or /proc/kallsyms has no symbol _stext: nothing tells "
						"where that kernel runs", v->path);
}

int vmlinux_open(const char *path, const char *notes, const struct kallsyms *k, struct vmlinux **ret,
		 struct err *e)
{
	struct vmlinux *v cleanup(vmlinux_cleanup) = calloc(1, sizeof(*v));
	struct err why = { "" };
	struct stat st;
	int r;

	if (!v)
		return err_set(e, -ENOMEM, "out of memory");
	v->fd = fileopen_regular(path, 0, &st);
	if (v->fd < 0)
		return err_set(e, v->fd, "%.200s: %s", path, v->fd == -EINVAL ? "not a regular file" :
									     strerror(-v->fd));
	v->path = strdup(path);
	if (!v->path)
		return err_set(e, -ENOMEM, "out of memory");
	r = elf_open_fd(v->fd, &v->elf, &why);
	if (r)
		return err_set(e, r, "%.200s: %s", path, why.msg[0] ? why.msg : strerror(-r));
	r = check_id(v, notes ? notes : VMLINUX_NOTES, e);
	if (!r)
		r = check_content(v, e);
	if (!r)
		r = find_offset(v, k, e);
	if (!r)
		*ret = take(v);
	return r;
}

void vmlinux_free(struct vmlinux *v)
{
	if (!v)
		return;
	elf_free(v->elf);
	if (v->fd >= 0)
		close(v->fd);
	free(v->path);
	free(v);
}

bool vmlinux_address(const struct vmlinux *v, uint64_t address, uint64_t *ret)
{
	if (!elf_exec_segment(v->elf, address - v->offset))
		return false;
	*ret = address - v->offset;
	return true;
}

int vmlinux_dup(const struct vmlinux *v)
{
	return elf_dup(v->elf);
}

const char *vmlinux_path(const struct vmlinux *v)
{
	return v->path;
}
