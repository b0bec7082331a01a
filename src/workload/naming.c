/* naming.c - see naming.h. */
#include "workload/naming.h"

#include "proc/cgroup_path.h"

struct setting {
	const char *name, *value; /* NULL: leave out */
};

static int set_all(struct labels *l, const struct setting *v, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && !r; i++)
		r = v[i].value ? labels_set(l, v[i].name, v[i].value) : 0;
	return r;
}

int label_pod(struct labels *l, const struct pod *p, const char *container)
{
	const char *service = p->service ? p->service : container ? container : p->name;
	const struct setting settings[] = {
		{ "namespace", p->namespace },
		{ "pod", p->name },
		{ "container", container },
		{ "workload", p->workload },
		{ "workload_kind", p->workload_kind },
		{ "service_name", service },
	};
	int r = set_all(l, settings, ARRAY_SIZE(settings));

	for (size_t i = 0; i < p->extra.n && r != -ENOMEM; i++) /* one too many is left out */
		r = labels_default(l, p->extra.v[i].name, p->extra.v[i].value);
	return r == -ENOMEM ? r : 0;
}

int label_container(struct labels *l, const char *id, const char *name)
{
	enum { ID_DIGITS = 64, SHORT_ID = 12 };
	char shown[CGROUP_CONTAINER_MAX];
	const struct setting settings[] = { { "container", shown }, { "service_name", shown } };

	snprintf(shown, sizeof(shown), "%.*s",
		 !name && strlen(id) == ID_DIGITS ? SHORT_ID : (int)sizeof(shown) - 1,
		 name ? name : id);
	return set_all(l, settings, ARRAY_SIZE(settings));
}

/* "nginx" of "nginx.service", in place; NULL: the unit isn't a service. */
static const char *service_of(char *unit)
{
	static const char suffix[] = ".service";
	size_t len = strlen(unit), n = sizeof(suffix) - 1;

	if (len <= n || strcmp(unit + len - n, suffix))
		return NULL;
	unit[len - n] = '\0';
	return unit;
}

/* A user's manager is no service to name its programs by: theirs are. */
int label_unit(struct labels *l, const char *path)
{
	char unit[CGROUP_UNIT_MAX], user_unit[CGROUP_UNIT_MAX];
	const struct setting settings[] = { { "unit", unit }, { "user_unit", user_unit } };
	const char *service;
	int r;

	if (cgroup_unit(path, unit, user_unit))
		return 0;
	r = set_all(l, settings, ARRAY_SIZE(settings));
	service = service_of(strncmp(unit, "user@", strlen("user@")) ? unit : user_unit);
	return r || !service ? r : labels_set(l, "service_name", service);
}

int label_process(struct labels *l, const char *exe, bool kernel)
{
	const char *base = strrchr(exe, '/');
	struct setting settings[] = { { "exe", exe }, { "service_name", base ? base + 1 : exe } };

	if (!settings[1].value[0])
		settings[1].value = kernel ? "kernel" : "unknown";
	return set_all(l, settings, ARRAY_SIZE(settings));
}
