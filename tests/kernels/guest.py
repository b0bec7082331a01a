"""A machine under emulation that boots a kernel with an initramfs made here.

    files = {"/init": "init", "/bin/wick": "build/wick", **libraries("build/wick", "")}
    write_initramfs("initramfs", files)
    sections, text = boot(kernel, "initramfs", seconds=300)
    sections["check"].status, sections["check"].text
"""

import collections
import glob
import os
import re
import subprocess
import tempfile

# Emulated in software, so that it works where this machine is itself a virtual one.
MACHINES = {
    "x86_64": ["qemu-system-x86_64", "-M", "q35", "-cpu", "max"],
    "aarch64": ["qemu-system-aarch64", "-M", "virt,gic-version=3", "-cpu", "cortex-a57"],
}
CONSOLES = {"x86_64": "ttyS0", "aarch64": "ttyAMA0"}

Section = collections.namedtuple("Section", "status text")


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def libraries(program, sysroot):
    """The shared libraries of a program, its loader too: {path in the guest: file here}. With a
    sysroot ("": none) those that it has, for a program that this machine can't run."""
    if not sysroot:
        return {path: path for path in re.findall(r"(/\S+) \(0x", output("ldd", program))}
    loader = re.search(r"interpreter: (\S+)\]", output("readelf", "-l", program))[1]
    found, wanted = {loader: sysroot + loader}, [program]
    while wanted:
        dynamic = output("readelf", "-d", wanted.pop())
        for name in re.findall(r"\(NEEDED\).*\[(\S+)\]", dynamic):
            path = f"/lib/{name}"
            if path not in found and name != os.path.basename(loader):
                found[path] = library_file(sysroot, name)
                wanted.append(found[path])
    return found


def library_file(sysroot, name):
    """Folders below lib and usr/lib are those of architectures."""
    for pattern in ("lib/*", "usr/lib/*", "lib", "usr/lib"):
        files = glob.glob(os.path.join(sysroot, pattern, name))
        if files:
            return files[0]
    raise FileNotFoundError(f"{name} is not in {sysroot}")


def cpio_entry(number, name, mode, data=b"", device=(0, 0)):
    """One file in the kernel's initramfs format (Documentation/driver-api/early-userspace)."""
    path = name.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(path), 0)
    head = b"070701" + b"".join(b"%08X" % f for f in fields) + path
    return head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4)


def write_initramfs(path, files):
    """files: {absolute path in the guest: file here}. Folders and the console come along."""
    folders = {"/dev"}
    for name in files:
        while (name := os.path.dirname(name)) != "/":
            folders.add(name)
    with open(path, "wb") as out:
        number = 0
        for number, name in enumerate(sorted(folders), 1):
            out.write(cpio_entry(number, name[1:], 0o040755))
        out.write(cpio_entry(number + 1, "dev/console", 0o020600, device=(5, 1)))
        for number, (name, source) in enumerate(sorted(files.items()), number + 2):
            with open(source, "rb") as f:
                out.write(cpio_entry(number, name[1:], 0o100755, f.read()))
        out.write(cpio_entry(number + 1, "TRAILER!!!", 0))


def boot(kernel, initramfs, arch="x86_64", seconds=300, cpus=2, memory_mib=1024):
    """Until the guest powers off or time is over: ({name: Section}, the text of the console)."""
    command = MACHINES[arch] + [
        "-accel", "tcg,thread=multi", "-smp", str(cpus), "-m", str(memory_mib), "-nodefaults",
        "-no-user-config", "-display", "none", "-no-reboot", "-serial", "stdio",
        "-kernel", kernel, "-initrd", initramfs,
        "-append", f"console={CONSOLES[arch]} quiet panic=-1 mitigations=off"]
    with tempfile.TemporaryFile() as console:
        try:
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=console,
                           stderr=subprocess.STDOUT, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            console.write(f"\nstopped after {seconds} s\n".encode())
        console.seek(0)
        text = console.read().decode("utf-8", "replace").replace("\r", "")
    return parse(text), text


def parse(text):
    sections, name, lines = {}, None, []
    for line in text.splitlines():
        words = line.split(" ")
        if words[0] == "@begin" and len(words) == 2:
            name, lines = words[1], []
        elif words[0] == "@end" and len(words) == 3 and words[1] == name:
            sections[name] = Section(int(words[2]), "\n".join(lines))
            name = None
        elif name:
            lines.append(line)
    return sections
