#!/bin/sh
# How a worker that isolates what it runs starts in its container:   isolating.sh CLASS
# Root, who has SYS_ADMIN for this alone, shows all of /proc, lets the user mendwork limit the memory and the processes
# of what it runs, and becomes that user, for good and without any capability.
set -eu
# Docker hides parts of /proc; the kernel then lets no namespace inside have one of its own.
for place in $(cut -d ' ' -f 2 /proc/mounts | grep '^/proc/' | sort -r); do
    umount "$place"
done
groups=/sys/fs/cgroup
if [ -f "$groups/cgroup.controllers" ]; then
    mount -o remount,bind,rw "$groups"
    # A group that holds processes hands no controller on: those that are here step down.
    mkdir -p "$groups/worker"
    for pid in $(cat "$groups/cgroup.procs"); do
        echo "$pid" > "$groups/worker/cgroup.procs" 2>/dev/null || true # it has ended
    done
    for place in "$groups" "$groups/worker"; do
        chown mendwork "$place" "$place/cgroup.procs" "$place/cgroup.subtree_control"
    done
else
    for controller in memory pids; do
        mount -o remount,bind,rw "$groups/$controller"
        chown mendwork "$groups/$controller" "$groups/$controller/cgroup.procs"
    done
fi
export HOME=/home/mendwork
exec setpriv --reuid mendwork --regid mendwork --init-groups --bounding-set=-all --inh-caps=-all --no-new-privs \
    python -P -m worker "$1"
