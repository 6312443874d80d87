#!/usr/bin/env python3
"""Runs a command as root in a virtual machine with this machine's files and Debian's kernel:
`in_vm.py -- build/release/test-bin/control_group_test`.

Some tests need a kernel that this machine may not have, for example one whose control groups of version 2 limit memory.
The command sees the files of this machine, what it writes is gone afterwards, and it runs in the root of the control
groups. Its exit status is this script's.

Needs Debian's qemu-system-x86, busybox-static, cpio and a kernel: an installed linux-image-amd64, or one that
`apt-get download` and `dpkg -x` put into a folder (--kernel)."""
import argparse
import gzip
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay")
INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /host /new
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs dev /dev
for module in {modules}; do /bin/busybox insmod /$module; done
/bin/busybox mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=524288,cache=loose host /host || /bin/busybox poweroff -f
/bin/busybox mount -t tmpfs -o size=75% layer /new
/bin/busybox mkdir -p /new/upper /new/work /new/root
/bin/busybox mount -t overlay -o lowerdir=/host,upperdir=/new/upper,workdir=/new/work overlay /new/root
/bin/busybox mount -t proc proc /new/root/proc
/bin/busybox mount -t sysfs sysfs /new/root/sys
/bin/busybox mount -t devtmpfs dev /new/root/dev
/bin/busybox mkdir -p /new/root/dev/pts /new/root/dev/shm
/bin/busybox mount -t devpts devpts /new/root/dev/pts
/bin/busybox mount -t tmpfs shm /new/root/dev/shm
/bin/busybox mount -t tmpfs tmp /new/root/tmp
/bin/busybox mount -t cgroup2 cgroup2 /new/root/sys/fs/cgroup
echo "+memory +pids" > /new/root/sys/fs/cgroup/cgroup.subtree_control
/bin/busybox ip link set lo up
echo in_vm: begin
/command
echo in_vm: status $?
/bin/busybox sync
/bin/busybox poweroff -f
"""


def kernel_of(folder):
    """The kernel's image and its folder of modules, the newest if there are several."""
    images = sorted((folder / "boot").glob("vmlinuz-*"))
    for image in reversed(images):
        modules = folder / "lib" / "modules" / image.name[len("vmlinuz-"):]
        if modules.is_dir():
            return image, modules
    sys.exit("in_vm: %s has no kernel with modules; `apt-get download linux-image-…-amd64`, `dpkg -x PACKAGE FOLDER` "
             "and --kernel FOLDER give one" % (folder / "boot"))


def with_dependencies(modules):
    """The files of MODULES, each behind those that it needs; a module that is built in has no file."""
    files = {path.stem.replace("-", "_"): path for path in modules.rglob("*.ko")}
    order = []

    def add(name):
        path = files.get(name.replace("-", "_"))
        if path is None or path in order:
            return
        needed = re.search(rb"\0depends=([^\0]*)\0", path.read_bytes())
        for other in needed[1].decode().split(",") if needed else []:
            add(other)
        order.append(path)

    for name in MODULES:
        add(name)
    return order


def initramfs(modules, options, to):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "bin").mkdir()
        busybox = shutil.which("busybox")
        if busybox is None:
            sys.exit("in_vm: no busybox (Debian's busybox-static)")
        shutil.copy(busybox, root / "bin" / "busybox")
        files = with_dependencies(modules)
        for file in files:
            shutil.copy(file, root / file.name)
        command = "cd %s && exec %s" % (shlex.quote(os.getcwd()), shlex.join(options.command))
        environment = ["PATH=%s" % os.environ.get("PATH", "/usr/bin:/bin"), "HOME=/root", "TERM=dumb",
                       *("%s=%s" % item for item in os.environ.items() if item[0].startswith(("FUSION_", "GTEST_", "PYTHON")))]
        (root / "init").write_text(INIT.format(modules=" ".join(file.name for file in files)))
        (root / "command").write_text("#!/bin/busybox sh\nexec /bin/busybox env -i %s /bin/busybox chroot /new/root /bin/sh -c %s\n" % (
            shlex.join(environment), shlex.quote(command)))
        for name in ("init", "command"):
            (root / name).chmod(0o755)
        names = "\n".join(str(path.relative_to(root)) for path in root.rglob("*"))
        packed = subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], input=names.encode(), cwd=root,
                                stdout=subprocess.PIPE, check=True).stdout
        to.write_bytes(gzip.compress(packed, 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", type=pathlib.Path, default=pathlib.Path("/"), metavar="FOLDER")
    parser.add_argument("--memory", default="4096", help="MiB of memory")
    parser.add_argument("--cores", default="2")
    parser.add_argument("--accelerator", choices=("tcg", "kvm"), default="tcg", help="tcg works everywhere, slowly")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    image, modules = kernel_of(options.kernel)
    with tempfile.TemporaryDirectory() as folder:
        disk = pathlib.Path(folder) / "initramfs"
        initramfs(modules, options, disk)
        machine = subprocess.Popen(
            ["qemu-system-x86_64", "-accel", options.accelerator, "-cpu", "max", "-m", options.memory,
             "-smp", options.cores, "-nographic", "-no-reboot", "-nodefaults", "-serial", "stdio", "-kernel", str(image),
             "-initrd", str(disk), "-append", "console=ttyS0 quiet panic=-1",
             "-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace")
        status, begun = None, False
        try:
            for line in machine.stdout:
                found = re.search(r"in_vm: status (\d+)", line)
                if found:
                    status = int(found[1])
                elif begun or "in_vm: begin" not in line:
                    print(line.rstrip(), flush=True)
                begun = begun or "in_vm: begin" in line
            machine.wait(timeout=10)
        finally:
            machine.kill()
    if status is None:
        sys.exit("in_vm: the machine ended before the command did")
    sys.exit(status)


if __name__ == "__main__":
    main()
