/* otlp.c - see otlp.h. Tables are appended entry by entry: a message's bytes may be given in pieces. */
#include "net/otlp.h"

#include <limits.h>

#include "otlp.pb-c.h"
#include "profile/pprof.h"

struct attribute {	/* key of the map: no padding */
	int64_t num;
	uint32_t key, str, unit, is_text;	/* strings, and which of num and str it is */
};

struct encoder {
	struct profile *p;
	struct buf dictionary, profile;
	struct map attributes;
	uint32_t *stacks;	/* index in the table + 1 by stack id; 0: not written yet */
	uint32_t nstacks;
	size_t value;		/* index of the sample type that is sent */
	uint32_t minor;
	struct buf scratch;
	int err;
};

static void encoder_release(struct encoder *e)
{
	profile_free(e->p);
	buf_free(&e->dictionary);
	buf_free(&e->profile);
	buf_free(&e->scratch);
	map_free(&e->attributes);
	free(e->stacks);
}

static void *scratch(struct encoder *e, size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	if (!p && !e->err)
		e->err = -ENOMEM;
	return p;
}

static void append(struct encoder *e, struct buf *out, const ProtobufCMessage *m)
{
	size_t n = protobuf_c_message_get_packed_size(m);
	uint8_t *bytes = scratch(e, n, 1);

	if (!bytes)
		return;
	protobuf_c_message_pack(m, bytes);
	buf_bytes(out, bytes, n);
	free(bytes);
}

static uint32_t text(struct encoder *e, const char *s)
{
	uint32_t id = 0;
	int r = profile_string(e->p, s, &id);

	if (r && !e->err)
		e->err = r;
	return id;
}

/* ---- attributes ---- */

static void write_attribute(struct encoder *e, const struct attribute *a)
{
	Wick__Otlp__Dictionary d = WICK__OTLP__DICTIONARY__INIT;
	Wick__Otlp__Attribute out = WICK__OTLP__ATTRIBUTE__INIT;
	Wick__Otlp__Value value = WICK__OTLP__VALUE__INIT;

	value.value_case = a->is_text ? WICK__OTLP__VALUE__VALUE_TEXT : WICK__OTLP__VALUE__VALUE_NUMBER;
	if (a->is_text)
		value.text = (char *)(uintptr_t)profile_str(e->p, a->str);
	else
		value.number = a->num;
	out.key = (int32_t)a->key;
	out.unit = (int32_t)a->unit;
	out.value = &value;
	d.n_attribute_table = 1;
	d.attribute_table = (Wick__Otlp__Attribute *[]){ &out };
	append(e, &e->dictionary, &d.base);
}

/* Its index in the table. */
static int32_t attribute(struct encoder *e, const struct attribute *a)
{
	uint32_t n = 0;
	bool added = false;
	int r = map_put(&e->attributes, a, &n, &added);

	if (r && !e->err)
		e->err = r;
	if (added)
		write_attribute(e, a);
	return (int32_t)n + 1;
}

static uint32_t attribute_key(struct encoder *e, uint32_t label)
{
	static const char *const names[][2] = { { "comm", "thread.name" },
						{ "pid", "process.pid" },
						{ "tid", "thread.id" } };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(profile_str(e->p, label), names[i][0]))
			return text(e, names[i][1]);
	return label;
}

static int32_t label_attribute(struct encoder *e, const struct profile_label *l)
{
	struct attribute a = { .is_text = l->str != 0 };

	a.key = attribute_key(e, l->key);
	if (l->str) {
		a.str = l->str;
	} else {
		a.num = l->num;
		a.unit = l->unit;
	}
	return attribute(e, &a);
}

/* ---- tables ---- */

static void write_zeros(struct encoder *e)
{
	Wick__Otlp__Dictionary d = WICK__OTLP__DICTIONARY__INIT;
	Wick__Otlp__Mapping mapping = WICK__OTLP__MAPPING__INIT;
	Wick__Otlp__Location location = WICK__OTLP__LOCATION__INIT;
	Wick__Otlp__Function function = WICK__OTLP__FUNCTION__INIT;
	Wick__Otlp__Link link = WICK__OTLP__LINK__INIT;
	Wick__Otlp__Attribute attr = WICK__OTLP__ATTRIBUTE__INIT;
	Wick__Otlp__Stack stack = WICK__OTLP__STACK__INIT;

	d.n_mapping_table = d.n_location_table = d.n_function_table = d.n_link_table = 1;
	d.n_attribute_table = d.n_stack_table = 1;
	d.mapping_table = (Wick__Otlp__Mapping *[]){ &mapping };
	d.location_table = (Wick__Otlp__Location *[]){ &location };
	d.function_table = (Wick__Otlp__Function *[]){ &function };
	d.link_table = (Wick__Otlp__Link *[]){ &link };
	d.attribute_table = (Wick__Otlp__Attribute *[]){ &attr };
	d.stack_table = (Wick__Otlp__Stack *[]){ &stack };
	append(e, &e->dictionary, &d.base);
}

static void write_mapping(struct encoder *e, uint32_t id)
{
	const struct profile_mapping m = profile_mapping_get(e->p, id);
	Wick__Otlp__Dictionary d = WICK__OTLP__DICTIONARY__INIT;
	Wick__Otlp__Mapping out = WICK__OTLP__MAPPING__INIT;
	int32_t build_id;

	if (m.build_id) {
		struct attribute a = { .str = m.build_id, .is_text = 1 };

		a.key = text(e, "process.executable.build_id.gnu");
		build_id = attribute(e, &a);
		out.n_attributes = 1;
		out.attributes = &build_id;
	}
	out.memory_start = m.start;
	out.memory_limit = m.limit;
	out.file_offset = m.offset;
	out.filename = (int32_t)m.file;
	d.n_mapping_table = 1;
	d.mapping_table = (Wick__Otlp__Mapping *[]){ &out };
	append(e, &e->dictionary, &d.base);
}

static void write_location(struct encoder *e, uint32_t id)
{
	const struct profile_location l = profile_location_get(e->p, id);
	const size_t n = profile_line_count(e->p, id);
	cleanup(freep_cleanup) Wick__Otlp__Line *lines = scratch(e, n, sizeof(*lines));
	cleanup(freep_cleanup) Wick__Otlp__Line **ptrs = scratch(e, n, sizeof(*ptrs));
	Wick__Otlp__Dictionary d = WICK__OTLP__DICTIONARY__INIT;
	Wick__Otlp__Location out = WICK__OTLP__LOCATION__INIT;

	if (!lines || !ptrs)
		return;
	for (size_t i = 0; i < n; i++) {
		const struct profile_line line = profile_line_get(e->p, id, i);

		wick__otlp__line__init(&lines[i]);
		lines[i].function = (int32_t)line.function;
		lines[i].line = line.line;
		lines[i].column = line.column;
		ptrs[i] = &lines[i];
	}
	out.mapping = (int32_t)l.mapping;
	out.address = l.address;
	out.n_lines = n;
	out.lines = ptrs;
	d.n_location_table = 1;
	d.location_table = (Wick__Otlp__Location *[]){ &out };
	append(e, &e->dictionary, &d.base);
}

static void write_function(struct encoder *e, uint32_t id)
{
	const struct profile_function f = profile_function_get(e->p, id);
	Wick__Otlp__Dictionary d = WICK__OTLP__DICTIONARY__INIT;
	Wick__Otlp__Function out = WICK__OTLP__FUNCTION__INIT;

	out.name = (int32_t)f.name;
	out.system_name = (int32_t)f.system_name;
	out.filename = (int32_t)f.file;
	out.start_line = f.start_line;
	d.n_function_table = 1;
	d.function_table = (Wick__Otlp__Function *[]){ &out };
	append(e, &e->dictionary, &d.base);
}

/* Strings may hold any character, NUL too. */
static void write_strings(struct encoder *e)
{
	for (uint32_t id = 0; id < strtab_count(&e->p->strings); id++) {
		Wick__Otlp__Dictionary d = WICK__OTLP__DICTIONARY__INIT;
		ProtobufCBinaryData s = { .len = strtab_len(&e->p->strings, id),
					  .data = (uint8_t *)(uintptr_t)profile_str(e->p, id) };

		d.n_string_table = 1;
		d.string_table = &s;
		append(e, &e->dictionary, &d.base);
	}
}

static int32_t stack(struct encoder *e, uint32_t sample)
{
	const uint32_t id = profile_stack_id(e->p, sample);
	const size_t depth = profile_depth(e->p, sample);
	Wick__Otlp__Dictionary d = WICK__OTLP__DICTIONARY__INIT;
	Wick__Otlp__Stack out = WICK__OTLP__STACK__INIT;

	if (!depth)
		return 0;
	if (!e->stacks[id]) {
		cleanup(freep_cleanup) int32_t *ids = scratch(e, depth, sizeof(*ids));

		for (size_t i = 0; ids && i < depth; i++)
			ids[i] = (int32_t)profile_frame(e->p, sample, i);
		out.n_locations = ids ? depth : 0;
		out.locations = ids;
		d.n_stack_table = 1;
		d.stack_table = (Wick__Otlp__Stack *[]){ &out };
		append(e, &e->dictionary, &d.base);
		e->stacks[id] = ++e->nstacks;
	}
	return (int32_t)e->stacks[id];
}

/* ---- the profile ---- */

static void write_sample(struct encoder *e, uint32_t n)
{
	const uint32_t set = profile_labels_id(e->p, n);
	const size_t nlabels = profile_label_count(e->p, set);
	cleanup(freep_cleanup) int64_t *attributes = scratch(e, nlabels, sizeof(*attributes));
	int64_t value = profile_values(e->p, n)[e->value];
	Wick__Otlp__Profile part = WICK__OTLP__PROFILE__INIT;
	Wick__Otlp__Sample out = WICK__OTLP__SAMPLE__INIT;

	for (size_t i = 0; attributes && i < nlabels; i++) {
		const struct profile_label l = profile_label_get(e->p, set, i);

		attributes[i] = label_attribute(e, &l);
	}
	out.stack = stack(e, n);
	if (e->minor >= 10) {
		out.n_second = nlabels;
		out.second = attributes;
		out.n_fourth = 1;
		out.fourth = &value;
	} else {
		out.n_second = 1;
		out.second = &value;
		out.n_third = nlabels;
		out.third = attributes;
	}
	part.n_samples = 1;
	part.samples = (Wick__Otlp__Sample *[]){ &out };
	if (attributes)
		append(e, &e->profile, &part.base);
}

/* FNV-1a: the same for the same series and time, in every run. */
static void hash_into(uint64_t *h, const char *s)
{
	do
		*h = (*h ^ (unsigned char)*s) * 0x100000001b3;
	while (*s++);
}

static void make_id(const struct item *it, uint8_t id[static 16])
{
	uint64_t h[2] = { 0xcbf29ce484222325, 0x84222325cbf29ce4 };
	char time[32];

	snprintf(time, sizeof(time), "%lld", (long long)it->time_nanos);
	for (int i = 0; i < 2; i++) {
		hash_into(&h[i], time);
		hash_into(&h[i], it->type);
		for (size_t j = 0; j < it->labels.n; j++) {
			hash_into(&h[i], it->labels.v[j].name);
			hash_into(&h[i], it->labels.v[j].value);
		}
	}
	memcpy(id, h, 16);
}

static void write_header(struct encoder *e, const struct item *it)
{
	const struct profile_value_type vt = e->p->types[e->value], period = e->p->period_type;
	Wick__Otlp__Profile part = WICK__OTLP__PROFILE__INIT;
	Wick__Otlp__ValueType type = WICK__OTLP__VALUE_TYPE__INIT;
	Wick__Otlp__ValueType period_type = WICK__OTLP__VALUE_TYPE__INIT;
	uint8_t id[16];

	make_id(it, id);
	type.type = (int32_t)vt.type;
	type.unit = (int32_t)vt.unit;
	period_type.type = (int32_t)period.type;
	period_type.unit = (int32_t)period.unit;
	part.sample_type = &type;
	part.period_type = &period_type;
	part.period = e->p->period;
	part.time_unix_nano = (uint64_t)e->p->time_nanos;
	part.duration_nano = (uint64_t)e->p->duration_nanos;
	part.profile_id.len = sizeof(id);
	part.profile_id.data = id;
	append(e, &e->profile, &part.base);
}

static void write_message(struct encoder *e, const struct item *it)
{
	const struct profile *p = e->p;

	write_zeros(e);
	for (uint32_t id = 1; id <= profile_mapping_count(p); id++)
		write_mapping(e, id);
	for (uint32_t id = 1; id <= profile_location_count(p); id++)
		write_location(e, id);
	for (uint32_t id = 1; id <= profile_function_count(p); id++)
		write_function(e, id);
	write_header(e, it);
	for (uint32_t n = 0; n < profile_sample_count(p) && !e->err; n++)
		write_sample(e, n);
	write_strings(e);
}

/* ---- around it ---- */

static char *resource_key(char *label)
{
	static char names[][2][24] = {
		{ "service_name", "service.name" },	 { "namespace", "k8s.namespace.name" },
		{ "pod", "k8s.pod.name" },		 { "container", "k8s.container.name" },
		{ "container_id", "container.id" },	 { "node", "k8s.node.name" },
		{ "exe", "process.executable.name" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(label, names[i][0]))
			return names[i][1];
	return label;
}

static void write_request(struct encoder *e, const struct item *it, struct buf *out)
{
	static char name[] = "wick", version[] = WICK_VERSION;
	Wick__Otlp__KeyValue kv[LABELS_MAX + 1], *kvs[LABELS_MAX + 1];
	Wick__Otlp__Value values[LABELS_MAX + 1];
	Wick__Otlp__Resource resource = WICK__OTLP__RESOURCE__INIT;
	Wick__Otlp__Scope scope = WICK__OTLP__SCOPE__INIT;
	Wick__Otlp__ScopeProfiles sp = WICK__OTLP__SCOPE_PROFILES__INIT;
	Wick__Otlp__ResourceProfiles rp = WICK__OTLP__RESOURCE_PROFILES__INIT;
	Wick__Otlp__Request request = WICK__OTLP__REQUEST__INIT;
	ProtobufCBinaryData bytes;

	for (size_t i = 0; i < it->labels.n; i++) {
		wick__otlp__key_value__init(&kv[i]);
		wick__otlp__value__init(&values[i]);
		values[i].value_case = WICK__OTLP__VALUE__VALUE_TEXT;
		values[i].text = it->labels.v[i].value;
		kv[i].key = resource_key(it->labels.v[i].name);
		kv[i].value = &values[i];
		kvs[i] = &kv[i];
	}
	resource.n_attributes = it->labels.n;
	resource.attributes = kvs;
	scope.name = name;
	scope.version = version;
	sp.scope = &scope;
	sp.profiles.data = (uint8_t *)e->profile.data;
	sp.profiles.len = e->profile.len;
	rp.resource = &resource;
	rp.n_scope_profiles = 1;
	rp.scope_profiles = (Wick__Otlp__ScopeProfiles *[]){ &sp };
	append(e, &e->scratch, &rp.base);
	bytes.data = (uint8_t *)e->scratch.data;
	bytes.len = e->scratch.len;
	request.n_resource_profiles = 1;
	request.resource_profiles = &bytes;
	request.dictionary.data = (uint8_t *)e->dictionary.data;
	request.dictionary.len = e->dictionary.len;
	append(e, out, &request.base);
}

static size_t value_to_send(const struct profile *p, const struct item *it)
{
	int samples = profile_find_type(p, "samples");

	return !strcmp(it->type, "process_cpu") && samples >= 0 ? (size_t)samples
								: profile_default_type(p);
}

int otlp_encode(const struct item *it, uint32_t minor, struct buf *out)
{
	cleanup(encoder_release) struct encoder e = {
		.dictionary = BUF_INIT(ITEM_MAX_BYTES),
		.profile = BUF_INIT(ITEM_MAX_BYTES),
		.scratch = BUF_INIT(2 * ITEM_MAX_BYTES),
		.attributes = MAP_INIT(sizeof(struct attribute)),
		.minor = minor,
	};
	int r = pprof_read(it->pprof, it->len, ITEM_MAX_BYTES, &e.p, NULL);

	if (!r && !e.p->ntypes)
		r = -EBADMSG;
	if (r)
		return r;
	e.value = value_to_send(e.p, it);
	e.stacks = calloc(strtab_count(&e.p->stacks), sizeof(uint32_t));
	if (!e.stacks)
		return -ENOMEM;
	write_message(&e, it);
	r = e.err ? e.err : e.dictionary.err ? e.dictionary.err : e.profile.err;
	if (r)
		return r;
	write_request(&e, it, out);
	return e.err ? e.err : e.scratch.err ? e.scratch.err : out->err;
}
