/* connect_error.h - the reason in a refusal by a server that speaks the Connect protocol.
 *
 *	struct connect_error ce;
 *	if (connect_error_parse(body, n, &ce))
 *		... ce.code "invalid_argument", ce.message "labels: too many" ...
 *
 * Such an error is a JSON object (Connect protocol reference, "Unary-Response"): {"code": "...",
 * "message": "...", "details": [...]}. The two texts are taken from its top level, wherever they
 * stand; everything else is skipped, whatever its type and depth. profefe's are much the same,
 * {"code": 400, "error": "..."}: "error" is another word for "message", and a code is text.
 * This is no JSON validator: it reads what is well-formed right and is never led out of bounds by
 * what is not.
 *
 * Text is cut at the size of its field, is valid UTF-8, and '?' stands for each control character,
 * since it goes to terminals. Cost: one pass, no allocation.
 */
#ifndef WICK_CONNECT_ERROR_H
#define WICK_CONNECT_ERROR_H

#include "base/base.h"

struct connect_error {
	char code[32]; /* "" if there is none */
	char message[384];
};

/* False, and *ret untouched, unless the body is an object with a code or a message. */
bool connect_error_parse(const void *body, size_t n, struct connect_error *ret);

/* Copies n bytes of any text into size bytes, NUL included: valid UTF-8, '?' for each control
 * character, white space at both ends left out, cut between characters. size is at least 1. */
void clean_text(const char *s, size_t n, char *ret, size_t size);

#endif
