/* dwarfdie.c - see dwarfdie.h. */
#include "symbol/dwarfdie.h"

#include <dwarf.h>

#define REFERENCES_MAX 8	/* concrete -> abstract -> declaration, and what compilers invent */

uint64_t die_number(Dwarf_Die *die, unsigned int attribute)
{
	Dwarf_Attribute a;
	Dwarf_Word v;

	return dwarf_attr(die, attribute, &a) && !dwarf_formudata(&a, &v) ? v : 0;
}

const char *die_string(Dwarf_Die *die, unsigned int attribute)
{
	Dwarf_Attribute a;

	return dwarf_attr(die, attribute, &a) ? dwarf_formstring(&a) : NULL;
}

bool die_reference(const struct die_reader *r, Dwarf_Die *die, unsigned int attribute,
		   Dwarf_Die *ret)
{
	Dwarf_Attribute a;

	return dwarf_attr(die, attribute, &a) && dwarf_formref_die(&a, ret) &&
	       !r->need(r->ctx, ret);
}

bool die_has_code(Dwarf_Die *die)
{
	return dwarf_hasattr(die, DW_AT_low_pc) || dwarf_hasattr(die, DW_AT_ranges);
}

void die_describe(const struct die_reader *r, Dwarf_Die *die, struct die_function *ret)
{
	Dwarf_Die at = *die, next;

	*ret = (struct die_function){ 0 };
	for (size_t i = 0; i < REFERENCES_MAX; i++, at = next) {
		const char *name = die_string(&at, DW_AT_name);

		if (!ret->linkage)
			ret->linkage = die_string(&at, DW_AT_linkage_name);
		if (!ret->linkage)
			ret->linkage = die_string(&at, DW_AT_MIPS_linkage_name);
		if (name && !ret->name) {
			ret->name = name;
			ret->named = at;
		}
		if (!ret->decl_line) {
			ret->decl_line = (uint32_t)die_number(&at, DW_AT_decl_line);
			ret->decl_file = die_number(&at, DW_AT_decl_file);
			ret->declared = at;
		}
		if (!die_reference(r, &at, DW_AT_abstract_origin, &next) &&
		    !die_reference(r, &at, DW_AT_specification, &next))
			break;
		if (dwarf_hasattr(&at, DW_AT_specification))
			ret->named = next;	/* the declaration stands in its class */
	}
}

static bool is_scope(int tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_subprogram:
		return true;
	}
	return false;
}

const char *die_scope_name(Dwarf_Die *die)
{
	const char *name = die_string(die, DW_AT_name);
	int tag = dwarf_tag(die);

	if (!is_scope(tag))
		return NULL;
	return name || tag != DW_TAG_namespace ? name : "(anonymous namespace)";
}

bool die_language_has_scopes(uint64_t language)
{
	switch (language) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case 0x2b:	/* DW_LANG_C_plus_plus_17 and _20, after libdw's table */
	case 0x2c:
	case DW_LANG_ObjC_plus_plus:
	case DW_LANG_Rust:
	case DW_LANG_D:
	case DW_LANG_Swift:
		return true;
	}
	return false;
}
