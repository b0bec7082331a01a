/* otlp_test.c - profiles as OTLP (otlp.h). That others understand them is the end-to-end tests' part. */
#include "sink_check.h"

#include "net/otlp.h"
#include "otlp.pb-c.h"

struct decoded {
	Wick__Otlp__Request *request;
	Wick__Otlp__Dictionary *d;
	Wick__Otlp__ResourceProfiles *rp;
	Wick__Otlp__Profile *p;
};

static struct decoded encode(struct item *it, uint32_t minor)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(1 << 20);
	struct decoded o = { 0 };
	ProtobufCBinaryData profile;

	MUST(otlp_encode(it, minor, &b));
	o.request = wick__otlp__request__unpack(NULL, b.len, (uint8_t *)b.data);
	ck_assert_uint_eq(o.request->n_resource_profiles, 1);
	o.d = wick__otlp__dictionary__unpack(NULL, o.request->dictionary.len,
					     o.request->dictionary.data);
	o.rp = wick__otlp__resource_profiles__unpack(NULL, o.request->resource_profiles[0].len,
						     o.request->resource_profiles[0].data);
	ck_assert_uint_eq(o.rp->n_scope_profiles, 1);
	profile = o.rp->scope_profiles[0]->profiles;
	o.p = wick__otlp__profile__unpack(NULL, profile.len, profile.data);
	ck_assert_ptr_nonnull(o.p);
	return o;
}

static void done(struct decoded *o)
{
	wick__otlp__profile__free_unpacked(o->p, NULL);
	wick__otlp__resource_profiles__free_unpacked(o->rp, NULL);
	wick__otlp__dictionary__free_unpacked(o->d, NULL);
	wick__otlp__request__free_unpacked(o->request, NULL);
}

static const char *string(const struct decoded *o, int32_t i)
{
	static char text[128];

	ck_assert(i >= 0 && (size_t)i < o->d->n_string_table);
	snprintf(text, sizeof(text), "%.*s", (int)o->d->string_table[i].len,
		 (char *)o->d->string_table[i].data);
	return text;
}

START_TEST(keeps_the_model)
{
	struct item *it = make_item("process_cpu", NULL);
	struct decoded o = encode(it, 10);
	const Wick__Otlp__Location *l;

	ck_assert_uint_eq(o.d->n_mapping_table, 2);	/* element 0 is empty, everywhere */
	ck_assert_uint_eq(o.d->n_location_table, 5);
	ck_assert_uint_eq(o.d->n_function_table, 5);
	ck_assert_uint_eq(o.d->n_stack_table, 4);
	ck_assert_uint_eq(o.d->n_link_table, 1);
	ck_assert_uint_eq(o.d->string_table[0].len, 0);
	ck_assert_uint_eq(o.d->n_attribute_table, 3);	/* thread.name, process.pid */
	ck_assert_str_eq(string(&o, o.p->sample_type->type), "samples");
	ck_assert_str_eq(string(&o, o.p->period_type->unit), "nanoseconds");
	ck_assert_int_eq(o.p->period, 10000000);
	ck_assert_uint_eq(o.p->time_unix_nano, (uint64_t)it->time_nanos);
	ck_assert_uint_eq(o.p->profile_id.len, 16);
	ck_assert_uint_eq(o.p->n_samples, 3);
	for (size_t i = 0; i < 3; i++) {
		const Wick__Otlp__Sample *s = o.p->samples[i];

		ck_assert_int_eq(s->fourth[0], 1);
		ck_assert_uint_eq(s->n_second, 2);
		ck_assert_uint_eq(o.d->stack_table[s->stack]->n_locations, 2);
		l = o.d->location_table[o.d->stack_table[s->stack]->locations[1]];
		ck_assert_str_eq(string(&o, o.d->function_table[l->lines[0]->function]->name), "main");
	}
	done(&o);
	item_unref(it);
}
END_TEST

START_TEST(names_attributes_by_convention)
{
	static const char *const labels[] = { "service_name=s", "pod=p", "own=o", NULL };
	struct item *it = make_item("process_cpu", labels);
	struct decoded o = encode(it, 10);
	bool found[3] = { 0 };

	ck_assert_uint_eq(o.rp->resource->n_attributes, 3);
	for (size_t i = 0; i < 3; i++) {
		const Wick__Otlp__KeyValue *kv = o.rp->resource->attributes[i];

		found[0] |= !strcmp(kv->key, "service.name") && !strcmp(kv->value->text, "s");
		found[1] |= !strcmp(kv->key, "k8s.pod.name") && !strcmp(kv->value->text, "p");
		found[2] |= !strcmp(kv->key, "own") && !strcmp(kv->value->text, "o");
	}
	ck_assert(found[0] && found[1] && found[2]);
	ck_assert_str_eq(string(&o, o.d->attribute_table[1]->key), "thread.name");
	ck_assert_str_eq(o.d->attribute_table[1]->value->text, "comm");
	ck_assert_str_eq(string(&o, o.d->attribute_table[2]->key), "process.pid");
	ck_assert_int_eq(o.d->attribute_table[2]->value->number, 7);
	done(&o);
	item_unref(it);
}
END_TEST

START_TEST(writes_the_old_revision_too)
{
	struct item *it = make_item("process_cpu", NULL);
	struct decoded o = encode(it, 9);

	ck_assert_uint_eq(o.p->samples[0]->n_second, 1);
	ck_assert_int_eq(o.p->samples[0]->second[0], 1);
	ck_assert_uint_eq(o.p->samples[0]->n_third, 2);
	ck_assert_uint_eq(o.p->samples[0]->n_fourth, 0);
	done(&o);
	item_unref(it);
}
END_TEST

START_TEST(has_the_same_id_again)
{
	struct item *a = make_item("process_cpu", NULL), *b = make_item("process_cpu", NULL);
	struct item *c = make_item("offcpu", NULL);
	struct decoded oa = encode(a, 10), ob = encode(b, 10), oc = encode(c, 10);

	ck_assert(!memcmp(oa.p->profile_id.data, ob.p->profile_id.data, 16));
	ck_assert(memcmp(oa.p->profile_id.data, oc.p->profile_id.data, 16));
	ck_assert_str_eq(string(&oc, oc.p->sample_type->type), "cpu");	/* the default one */
	done(&oa);
	done(&ob);
	done(&oc);
	item_unref(a);
	item_unref(b);
	item_unref(c);
}
END_TEST

START_TEST(mistrusts_the_item)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(1 << 20);
	struct labels none = LABELS_INIT;
	struct item_profile bad = { .pprof = strdup("garbage"), .len = 7 };
	struct item *it;

	MUST(item_new(&none, "cpu", &bad, &it));
	ck_assert_int_eq(otlp_encode(it, 10, &b), -EBADMSG);
	item_unref(it);
}
END_TEST

RUN_ALL("otlp", keeps_the_model, names_attributes_by_convention, writes_the_old_revision_too,
	has_the_same_id_again, mistrusts_the_item)
