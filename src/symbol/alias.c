/* alias.c - see alias.h. */
#include "symbol/alias.h"

enum {
	DOTTED_BIT = 14,	/* above the length */
	UNDERSCORES_BIT = 15,	/* 4 bits */
	LOCAL_BIT = 19,
	LABEL_BIT = 20,
};

uint32_t alias_rank(const char *name, size_t len, bool label, bool local)
{
	bool dotted = memchr(name, '.', len) != NULL;
	uint32_t underscores = 0;

	while (underscores < 15 && underscores < len && name[underscores] == '_')
		underscores++;
	return (uint32_t)label << LABEL_BIT | (uint32_t)local << LOCAL_BIT |
	       underscores << UNDERSCORES_BIT | (uint32_t)dotted << DOTTED_BIT |
	       (uint32_t)(len & ALIAS_NAME_MAX);
}

int alias_compare(uint32_t rank_a, const char *a, uint32_t rank_b, const char *b)
{
	if (rank_a != rank_b)
		return rank_a < rank_b ? -1 : 1;
	return a == b ? 0 : memcmp(a, b, alias_length(rank_a));
}
