/* places.h - which pieces of a file's code have unwind rules, and from where. Part of unwtab.h.
 *
 *	struct places p = { 0 };
 *
 *	r = places_find(elf, debug, limits, &p, &stats);
 *	... p.v[0 .. p.n-1], ascending; each one's source leads to p.cfi, p.code ...
 *	places_free(&p);
 *
 * Places may overlap; of those that start together the last counts, else the one that starts later.
 */
#ifndef WICK_UNWIND_PLACES_H
#define WICK_UNWIND_PLACES_H

#include "unwind/cfi.h"
#include "unwind/gaps.h"
#include "unwind/gorows.h"
#include "unwind/unwtab.h"

#define PLACES_SEGMENTS_MAX 64		/* executable PT_LOADs; files have 1 to 4 */
#define PLACES_SECTION_MAX  (1u << 29)	/* so that an offset leaves room for the three flags below */

/* A piece of code with a rule, or rules. */
struct place {
	uint64_t start;		/* file offset */
	uint32_t size;
	uint32_t source;	/* offset of the FDE, or one of the following */
};
enum {
	PLACE_TRAMPOLINE = 0,	/* no FDE can be there: .eh_frame has a CIE first */
	PLACE_ENTRY = 1,
	PLACE_CLONE = 2,
};
#define PLACE_DEBUG 0x80000000u	/* + offset in .debug_frame */
#define PLACE_CODE  0x40000000u	/* + number of the piece of code */
#define PLACE_GO    0x20000000u	/* + number in go_funcs[] */

struct places {
	struct place *v;
	size_t n, cap;
	struct cfi cfi[2];	/* .eh_frame, .debug_frame */
	struct code *code;	/* what no section covers; or NULL */
	struct gorows *gorows;	/* or NULL */
	struct gorows_func *go_funcs;
	size_t ngo_funcs;
	uint16_t machine;
	bool go;

	const struct elf *elf;

	/* private */
	const struct unwtab_limits *limits;
	struct unwtab_stats *stats;
	const struct unwtab_debug *open_debug;	/* NULL: there is none, or it has been asked for */
	const struct elf *debug;
	const struct elf_segment *segments[PLACES_SEGMENTS_MAX];
	size_t nsegments;
	struct file_range { uint64_t start, end; } code_sections[PLACES_SEGMENTS_MAX];	/* file offsets */
	size_t ncode;
	void *section[2];
	struct gap *gaps;	/* between places, by segment */
	size_t ngaps, gaps_cap, go_funcs_cap;
};

/* *p is zeros, and is to be freed after failure too. Borrows all but stats until places_free. Errors as
 * unwtab_compile. */
int must_check places_find(const struct elf *elf, const struct unwtab_debug *debug,
			   const struct unwtab_limits *limits, struct places *p,
			   struct unwtab_stats *stats);
void places_free(struct places *p);

#endif
