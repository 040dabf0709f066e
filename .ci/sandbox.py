"""Runs the program as deploy/vestibule.service would have systemd run it: ROOT UNIT ENVIRONMENT ARGUMENT...

In ROOT, which is mounted read-only, as a user without rights, with the system calls, the address families
and the rule on executable memory that UNIT names, and nothing in the environment but what ENVIRONMENT has.
"""

import ctypes
import errno
import os
import socket
import subprocess
import sys

import seccomp

root, unit, environment, *arguments = sys.argv[1:]
lines = open(unit).read().splitlines()
settings = [line.split("=", 1) for line in lines if "=" in line and not line.startswith("#")]


def values(name):
    return [word for key, value in settings if key == name for word in value.split()]


def calls(group):
    """The system calls of a group of systemd's."""
    said = subprocess.run(["systemd-analyze", "syscall-filter", group], capture_output=True, text=True, check=True)
    found = set()
    for word in (line.strip() for line in said.stdout.splitlines()[1:]):
        if word and not word.startswith("#"):
            found |= calls(word) if word.startswith("@") else {word}
    return found


def allowed():
    all_of = set()
    for key, value in settings:
        if key == "SystemCallFilter":
            listed = set().union(*(calls(group) for group in value.removeprefix("~").split()))
            all_of = all_of - listed if value.startswith("~") else all_of | listed
    return all_of


filter = seccomp.SyscallFilter(seccomp.ERRNO(errno.EPERM))
for call in allowed() - {"socket"}:
    try:
        filter.add_rule(seccomp.ALLOW, call)
    except RuntimeError:
        pass  # Of another architecture.
for family in values("RestrictAddressFamilies"):
    filter.add_rule(seccomp.ALLOW, "socket", seccomp.Arg(0, seccomp.EQ, getattr(socket, family)))
assert values("MemoryDenyWriteExecute") == ["yes"] and values("NoNewPrivileges") == ["yes"]
settings = dict(line.split("=", 1) for line in open(environment).read().splitlines())
libc = ctypes.CDLL(None, use_errno=True)

os.chroot(root)
os.chdir("/")
os.umask(0o077)
os.setgroups([])
os.setgid(65532)
os.setuid(65532)
PR_SET_NO_NEW_PRIVS, PR_SET_MDWE, REFUSE_EXEC_GAIN = 38, 65, 1
assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
if libc.prctl(PR_SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0) != 0:
    print("the kernel is older than 6.3: executable memory is not looked at", file=sys.stderr)
try:
    open("/written", "w")
    sys.exit("the root can be written to")
except OSError:
    pass
filter.load()
for family in (socket.AF_NETLINK, socket.AF_PACKET):
    try:
        socket.socket(family, socket.SOCK_RAW)
        sys.exit("the filter lets everything through")
    except PermissionError:
        pass
os.execve("/usr/local/bin/vestibule", ["vestibule", *arguments], settings)
