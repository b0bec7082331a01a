"""Writes an ELF file such as a browser's: hundreds of MB of text (a hole on disk) and a million symbols.

    python3 tests/bench/big_elf.py FILE [--symbols 1000000] [--text-mb 500]

Names are as long as C++ makes them, 20 to 120 bytes, in no order of addresses, and one in ten is an alias
of another.
"""

import argparse
import random
import struct


def names(n, rng):
    words = ["Renderer", "Layout", "V8", "Http", "Cache", "Thread", "Stream", "Paint", "Node", "Event"]
    table = bytearray(b"\0")
    offsets = []
    for i in range(n):
        parts = [rng.choice(words) for _ in range(rng.randint(1, 8))]
        name = "_ZN" + "".join(f"{len(p)}{p}" for p in parts) + f"7f{i:06d}Ev"[:9] + "Ev"
        offsets.append(len(table))
        table += name.encode() + b"\0"
    return bytes(table), offsets


def write(path, symbols, text_bytes):
    rng = random.Random(1)
    strings, offsets = names(symbols, rng)
    base, text_at = 0x400000, 0x1000
    step = max(16, text_bytes // symbols & ~15)
    order = list(range(symbols))
    rng.shuffle(order)
    symtab = bytearray(24)
    for place in order:
        alias = place % 10 == 9
        at = base + text_at + (place - alias) * step
        symtab += struct.pack("<IBBHQQ", offsets[place], 0x12, 0, 1, at, step - 4)
    shstr = b"\0.text\0.symtab\0.strtab\0.shstrtab\0"
    symtab_at = text_at + text_bytes
    strtab_at = symtab_at + len(symtab)
    shstr_at = strtab_at + len(strings)
    shoff = (shstr_at + len(shstr) + 7) & ~7

    def section(name, kind, flags, addr, off, size, link=0, info=0, entsize=0):
        return struct.pack("<IIQQQQIIQQ", shstr.index(name), kind, flags, addr, off, size, link, info, 1,
                           entsize)

    with open(path, "wb") as f:
        f.write(b"\x7fELF\2\1\1" + bytes(9))
        f.write(struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, base + text_at, 64, shoff, 0, 64, 56, 1, 64, 5, 4))
        f.write(struct.pack("<IIQQQQQQ", 1, 5, text_at, base + text_at, base + text_at, text_bytes,
                            text_bytes, 4096))
        f.seek(symtab_at)
        f.write(symtab)
        f.write(strings)
        f.write(shstr)
        f.seek(shoff)
        f.write(bytes(64))
        f.write(section(b".text\0", 1, 6, base + text_at, text_at, text_bytes))
        f.write(section(b".symtab\0", 2, 0, 0, symtab_at, len(symtab), 3, 1, 24))
        f.write(section(b".strtab\0", 3, 0, 0, strtab_at, len(strings)))
        f.write(section(b".shstrtab\0", 3, 0, 0, shstr_at, len(shstr)))


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("file")
    p.add_argument("--symbols", type=int, default=1000000)
    p.add_argument("--text-mb", type=int, default=500)
    a = p.parse_args()
    write(a.file, a.symbols, a.text_mb << 20)
