/* otlp.h - a pprof profile as OTLP's request for one profile (proto/otlp.proto).
 *
 *	r = otlp_encode(it, 10, &body);
 *
 * The same model in other tables: stacks are interned, attributes take the place of labels, element 0 of
 * each table is empty. OTLP's profile has one sample type. For CPU profiles it is samples/count with the
 * period in nanoseconds (Pyroscope makes process_cpu of just that), for others the default one.
 * Labels of the series become attributes of the resource, under the names of the semantic conventions
 * where there is one (service.name, k8s.pod.name, ...); comm, pid and tid are thread.name, process.pid
 * and thread.id of the sample, build ids process.executable.build_id.gnu of the mapping.
 * profile_id is made of type, labels and time: a retry has the same one.
 *
 * Cost: reads the profile and writes it again, about three times pprof_write().
 */
#ifndef WICK_NET_OTLP_H
#define WICK_NET_OTLP_H

#include "net/item.h"

/* minor: of the protocol's revision, 9 or 10 (which is later ones' encoding, too). Appends. 0, -ENOMEM,
 * -E2BIG; -EBADMSG: the item's bytes are no pprof profile. */
int must_check otlp_encode(const struct item *it, uint32_t minor, struct buf *out);

#endif
