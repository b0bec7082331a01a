/* rule.h - from what CFI says about a range of code to a row of the table (wick_rows.h).
 *
 * Nearly all rules fit into the row's eight bytes. Others become a side rule. Expressions are not
 * carried along to be interpreted at run time; they are worked out here, symbolically, and those
 * that come to a sum of at most two registers, perhaps loaded from memory, are kept. That is every
 * one that compilers, linkers and hand-written CFI were found to produce; the rest is refused.
 */
#ifndef WICK_UNWIND_RULE_H
#define WICK_UNWIND_RULE_H

#include "unwind/cfi.h"
#include "wick_rows.h"

#define RULE_EXPR_MAX 64	/* bytes of an expression that is looked at; they have 4 to 15 */

/* Why a rule was refused, and with which effect. X(constant, label). */
#define RULE_REASONS(X)                                                                            \
	X(RULE_OK, "ok")                                                                           \
	X(RULE_CFA_UNSET, "CFA not set")                                                           \
	X(RULE_CFA_EXPRESSION, "CFA expression")                                                   \
	X(RULE_CFA_REGISTER, "CFA register")                                                       \
	X(RULE_RA_UNSET, "return address not set")                                                 \
	X(RULE_RA_EXPRESSION, "return address rule")                                               \
	X(RULE_SP, "stack pointer rule")                                                           \
	X(RULE_OFFSET, "offset over 32 bits")                                                      \
	X(RULE_PROGRAM, "malformed or unknown instructions")                                       \
	/* not fatal: only the frame pointer is lost */                                            \
	X(RULE_FP, "frame pointer rule")

enum rule_reason {
#define RULE_ENUM(constant, label) constant,
	RULE_REASONS(RULE_ENUM)
#undef RULE_ENUM
		RULE_REASONS_MAX
};
const char *rule_reason_label(enum rule_reason reason);

/* Fills in *ret_row except pc. cfa is WK_CFA_SIDE when *ret_side holds the rule (the row's index is
 * the caller's to set), WK_CFA_BAD for every reason but RULE_OK and RULE_FP. signal is the FDE's
 * augmentation. */
enum rule_reason rule_compile(uint16_t machine, bool signal, const struct cfi_rule *rule,
			      struct wk_row *ret_row, struct wk_side *ret_side);

#endif
