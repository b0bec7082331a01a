/* engine.h - the names of containers that Podman (and whoever uses containers/storage) or Docker
 * keep.
 *
 *	struct engine *e;
 *	r = engine_new("", &e);
 *	r = engine_name(e, "3f2a9c...", name);	// "web"; -ENOENT: no engine knows it, or no longer
 *
 * Docker: /var/lib/docker/containers/ID/config.v2.json. Podman: the lists of containers of its
 * storage, below /var/lib/containers/storage and, for containers that end with their process,
 * /run/containers/ storage; read again when they have changed, but not twice within ENGINE_READ_NS.
 * An engine writes the name before it makes the cgroup, so a container of one second is found if it
 * is asked for when the cgroup is made. Rootless engines' files aren't looked for.
 *
 * The files are read as if they were hostile: regular files alone, links not followed, sizes
 * capped. Not thread-safe. Memory: 100 bytes a container. Cost: a few stat(2), or 10 us a container
 * of a changed list.
 */
#ifndef WICK_ENGINE_H
#define WICK_ENGINE_H

#include "base/base.h"

enum {
	ENGINE_NAME_MAX = 256,	   /* NUL included */
	ENGINE_FILE_MAX = 8 << 20, /* bytes; larger files aren't read */
	ENGINE_NAMES_MAX = 10000,  /* of a list; later ones aren't seen */
};
#define ENGINE_READ_NS 100000000ULL

struct engine;

/* root: prefix of the paths, "" for this machine. 0, -ENOMEM. */
int must_check engine_new(const char *root, struct engine **ret);
void engine_free(struct engine *e);
DEFINE_CLEANUP(engine, struct engine *, engine_free)

/* id: 64 hex digits; others are nobody's. 0; -ENOENT. */
int must_check engine_name(struct engine *e, const char *id, char ret[static ENGINE_NAME_MAX]);

/* The texts of those files. Each container with an id and a name of letters, digits and "_.-" goes
 * to fn. 0, -EBADMSG: not such a file. */
typedef void engine_container(void *ctx, const char *id, const char *name);
int must_check engine_read_podman(const char *json, size_t len, engine_container *fn, void *ctx);
int must_check engine_read_docker(const char *json, size_t len, engine_container *fn, void *ctx);

#endif
