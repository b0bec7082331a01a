"""Makes a folder with what building and running wick for another architecture needs.

    python3 tests/kernels/sysroot.py ARCH DIRECTORY        (ARCH as Debian calls it: arm64)

The packages are those of this machine's release. Does nothing if DIRECTORY exists; exits 1, with
the reason, if they can't be had.
"""

import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import archive  # noqa: E402

PACKAGES = ["libc6-dev", "libbpf-dev", "libelf-dev", "libdw-dev", "zlib1g-dev", "libprotobuf-c-dev",
            "libcurl4-gnutls-dev", "libiberty-dev", "libzydis-dev", "liblzma-dev", "libzstd-dev",
            "libyaml-dev", "libjansson-dev", "libmicrohttpd-dev", "busybox-static"]


def release():
    with open("/etc/os-release", encoding="utf-8") as f:
        values = dict(line.rstrip().split("=", 1) for line in f if "=" in line)
    return values.get("VERSION_CODENAME", "").strip('"')


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    arch, root = sys.argv[1], os.path.abspath(sys.argv[2])
    if os.path.exists(root):
        return
    suites = [release(), f"{release()}-security"]
    try:
        archive.Archive(root + ".apt", suites, arch).unpack(PACKAGES, root + ".new")
    except archive.Unavailable as why:
        sys.exit(f"no sysroot for {arch}: {why}")
    os.rename(root + ".new", root)
    shutil.rmtree(root + ".apt")


if __name__ == "__main__":
    main()
