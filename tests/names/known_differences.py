"""Differences that are understood: mistakes of the peer (llvm-symbolizer 14) or another choice between
equals. Each rule undoes one of them in the peer's answer, where it is proven by the file's own tables. An
answer is explained if it equals wick's when all rules have been applied."""


def explain(elf, address, our, their):
    """The reasons, joined, or None."""
    reasons = []
    for reason, undo in RULES:
        undone = undo(elf, address, our, their)
        if undone and undone != their:
            reasons.append(reason)
            their = undone
        if our == their:
            return " + ".join(reasons)
    return None


def doubled_directory(_elf, _address, our, their):
    """DWARF 5's directory 0 is the compilation directory itself (6.2.4). The peer joins the two when
    they are relative ("./csu"): csu/csu/start.c."""
    fixed = []
    for i, (name, path, line, column) in enumerate(their):
        mine = our[i][1] if i < len(our) else ""
        parts = path.split("/")
        for n in range(1, len(parts) // 2 + 1):
            if parts[:n] == parts[n:2 * n] and "/".join(parts[n:]) == mine:
                path = mine
                break
        fixed.append((name, path, line, column))
    return fixed


def outermost_name(their, name):
    return their[:-1] + [(name,) + their[-1][1:]]


def alias(elf, address, our, their):
    """Several symbols are one function; wick's rule is alias.h, the peer takes any."""
    at = {name: start for start, _, name, _ in elf.covering(address)}
    a, b = our[-1][0], their[-1][0]
    return outermost_name(their, a) if a in at and at.get(a) == at.get(b) else None


def debug_symbols(elf, address, our, their):
    """The peer takes lines from a separate debug file, but not its symbols: functions without debug
    information (assembler, libgcc) have no name, clones (f.cold, f.part.0) the function's."""
    names = [name for _, _, name, _ in elf.covering(address, debug_only=True)]
    a, b = our[-1][0], their[-1][0]
    return outermost_name(their, a) if a in names and (b == "??" or a.startswith(b + ".")) else None


def not_covering(elf, address, our, their):
    """The peer takes a label (LTO's "file.c.0123abcd", without a type or size) for the function."""
    a, b = our[-1][0], their[-1][0]
    names = [name for _, _, name, _ in elf.covering(address)]
    if b in names or b not in elf.labels() or (a not in names and a != "??"):
        return None
    return outermost_name(their, a)


RULES = [
    ("a label taken for a function", not_covering),
    ("relative directory joined twice", doubled_directory),
    ("another name of the same code", alias),
    ("symbols of the debug file not read", debug_symbols),
]
