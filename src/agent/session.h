/* session.h - profiles on demand, cut out of the agent's own stream of samples.
 *
 * Whoever asks (a thread of the HTTP side) waits; the agent's loop does the rest, so that any number of
 * requests share one sampler:
 *
 *	asker				loop
 *	sessions_begin(s, &q, &mine)	eventfd wakes it: sessions_poll() -> a drain is due, frequency
 *	sessions_wait(s, mine, ...)	drain; sessions_started(s, now); recorder's tap -> sessions_tap()
 *	  ... sleeps ...		sessions_poll() -> one is over: drain; sessions_ended(s, now)
 *	mine->samples			sessions_freq() is what the loop should sample at
 *	sessions_end(s, mine)
 *
 * A session has its own samples (struct samples) from its first to its last moment, of the whole node;
 * what the request selects is selected when its profile is built. Limits: callers and frequency
 * are the HTTP side's; a session's samples end at SESSION_SAMPLES_MAX entries, which ends the session
 * early (its profile says how long it lasted).
 */
#ifndef WICK_AGENT_SESSION_H
#define WICK_AGENT_SESSION_H

#include "base/base.h"
#include "collect/samples.h"

struct sessions;

enum { SESSION_SAMPLES_MAX = 1 << 20 };

enum session_state {
	SESSION_WANTED,		/* the loop has not seen it */
	SESSION_RUNNING,
	SESSION_DONE,
	SESSION_FAILED,		/* out of memory, or the agent ends */
};

struct session {
	/* set by the asker */
	uint32_t freq;			/* Hz it wants at least */
	uint64_t duration_ns;
	/* set by the loop; the asker's once it is done */
	enum session_state state;
	struct samples samples;
	uint64_t start, end;		/* CLOCK_MONOTONIC */
	int64_t time_nanos;		/* wall clock of start */
	uint32_t sampled_freq;		/* what it got */
	uint64_t epoch;			/* of files.h: its first samples' */
	struct session *next;
};

int must_check sessions_new(struct sessions **ret);
void sessions_free(struct sessions *s);
DEFINE_CLEANUP(sessions, struct sessions *, sessions_free)

/* ---- the asker ---- */

/* 0, -ENOMEM; -ESHUTDOWN: the agent is ending. */
int must_check sessions_begin(struct sessions *s, uint32_t freq, uint64_t duration_ns,
			      struct session **ret);
/* Waits until it is done. gone(ctx) is asked about once a second whether the asker still wants it (NULL:
 * yes); if not, the session ends now. 0; -ECANCELED: gone; -ENOMEM, -ESHUTDOWN. */
int must_check sessions_wait(struct sessions *s, struct session *mine, bool (*gone)(void *ctx),
			     void *ctx);
void sessions_end(struct sessions *s, struct session *mine);

/* ---- the loop ---- */

int sessions_fd(const struct sessions *s);	/* readable when one has begun or was given up */
/* Whether a drain is due now, because one has begun or is over. Empties sessions_fd(). */
bool sessions_poll(struct sessions *s, uint64_t now);
/* After that drain. time_nanos: the wall clock, freq: what is sampled at from here on; epoch: of the
 * files (files.h). */
void sessions_turn(struct sessions *s, uint64_t now, int64_t time_nanos, uint32_t freq,
		   uint64_t epoch);
/* The oldest epoch of a session that has not ended, its profile being built or not; UINT64_MAX: none. */
uint64_t sessions_oldest_epoch(struct sessions *s);
/* The next time that sessions_poll() will say yes by itself; UINT64_MAX: none. */
uint64_t sessions_next(struct sessions *s);
/* The highest frequency that is asked for; 0: no session. */
uint32_t sessions_freq(struct sessions *s);
/* A sample, taken at `when` or later (0: just now): for each session that ran by then. A session that
 * can't keep it fails. */
void sessions_tap(struct sessions *s, uint64_t when, const struct wk_sample *sample,
		  const uint64_t *user, size_t nuser, const uint64_t *kernel, size_t nkernel);
/* No more: those that run end as they are, new ones are refused. */
void sessions_shutdown(struct sessions *s);
uint32_t sessions_count(struct sessions *s);
uint64_t sessions_cut(struct sessions *s);	/* ended early at SESSION_SAMPLES_MAX, ever */

#endif
