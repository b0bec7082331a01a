/* names.c - see names.h. */
#include "profile/names.h"

#include <inttypes.h>

static void append(const struct profile *p, uint32_t string, struct buf *out)
{
	buf_bytes(out, profile_str(p, string), strtab_len(&p->strings, string));
}

size_t name_frame_count(const struct profile *p, uint32_t location)
{
	return MAX(profile_line_count(p, location), 1);
}

void name_module(const struct profile *p, uint32_t mapping, struct buf *out)
{
	uint32_t file = mapping ? profile_mapping_get(p, mapping).file : 0;
	const char *s = profile_str(p, file);
	const char *slash = strrchr(s, '/');

	if (!file)
		buf_str(out, "[unknown]");
	else if (slash && slash[1] && s[0] != '[' && strncmp(s, "//", 2) != 0)
		buf_str(out, slash + 1);
	else
		append(p, file, out);
}

void name_frame(const struct profile *p, uint32_t location, size_t i, struct buf *out)
{
	struct profile_location l = profile_location_get(p, location);
	struct profile_function f = { 0 };

	if (i < profile_line_count(p, location))
		f = profile_function_get(p, profile_line_get(p, location, i).function);
	if (f.name || f.system_name) {
		append(p, f.name ? f.name : f.system_name, out);
	} else if (l.mapping && profile_mapping_get(p, l.mapping).file) {
		name_module(p, l.mapping, out);
		buf_printf(out, "+0x%" PRIx64, l.address);
	} else if (l.address) {
		buf_printf(out, "0x%" PRIx64, l.address);
	} else {
		buf_str(out, "[unknown]");
	}
}

bool name_is_kernel(const struct profile *p, uint32_t location)
{
	struct profile_location l = profile_location_get(p, location);

	if (l.address >> 63)
		return true;
	return l.mapping && !strncmp(profile_str(p, profile_mapping_get(p, l.mapping).file),
				     "[kernel", strlen("[kernel"));
}

struct name_keys name_keys(const struct profile *p)
{
	return (struct name_keys){
		.comm = profile_find_string(p, "comm"),
		.pid = profile_find_string(p, "pid"),
		.tid = profile_find_string(p, "tid"),
	};
}

void name_label(const struct profile *p, const struct profile_label *l, struct buf *out)
{
	if (l->str) {
		append(p, l->str, out);
		return;
	}
	buf_printf(out, "%" PRId64, l->num);
	if (l->unit) {
		buf_char(out, ' ');
		append(p, l->unit, out);
	}
}

void name_thread(const struct profile *p, const struct name_keys *k, uint32_t labels_id,
		 struct buf *out)
{
	struct profile_label comm, pid, tid;
	bool has_comm = profile_label_find(p, labels_id, k->comm, &comm);
	bool has_pid = profile_label_find(p, labels_id, k->pid, &pid);
	bool has_tid = profile_label_find(p, labels_id, k->tid, &tid);

	if (!has_comm && !has_pid && !has_tid) {
		buf_str(out, "[unknown]");
		return;
	}
	if (has_comm)
		name_label(p, &comm, out);
	if (!has_pid && !has_tid)
		return;
	buf_str(out, has_comm ? " (" : "(");
	if (has_pid)
		name_label(p, &pid, out);
	if (has_pid && has_tid)
		buf_char(out, '/');
	if (has_tid)
		name_label(p, &tid, out);
	buf_char(out, ')');
}

void name_clean(struct buf *out, const char *s, size_t n)
{
	size_t done = 0;

	for (size_t i = 0; i < n; i++) {
		const unsigned char c = (unsigned char)s[i];
		/* U+0080 .. U+009F are c2 80 .. c2 9f in UTF-8 */
		const bool c1 = c == 0xc2 && i + 1 < n && (unsigned char)s[i + 1] < 0xa0;

		if (c >= 0x20 && c != 0x7f && !c1)
			continue;
		buf_bytes(out, s + done, i - done);
		buf_char(out, '?');
		i += c1;
		done = i + 1;
	}
	buf_bytes(out, s + done, n - done);
}
