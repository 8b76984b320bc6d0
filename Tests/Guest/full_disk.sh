# The device's folder on a disk that fills up while it serves; the prover and the service have room.
mount /dev/vda /disk
export XDG_DATA_HOME=/tmp/data
meet holdfast /disk/lock /tmp --maximum-uses 20 || report failed enrolment
# Twice, because ext4 releases its reserved space once everything is written.
fill() { for pass in 1 2; do dd if=/dev/zero bs=4k >>/disk/ballast; sync; done; }
serve holdfast /disk/lock
prove room holdfast /tmp/state unlock

fill
for round in 1 2 3; do prove full holdfast /tmp/state unlock; done
rm -f /disk/ballast
prove room holdfast /tmp/state unlock

# The device ends on the full disk and has to start there; the space that it freed at its end is filled, too.
fill
prove full holdfast /tmp/state unlock
stop
fill
reporting start timeout 120 holdfast device serve --dir /disk/lock --listen unix:/tmp/lock.sock

rm -f /disk/ballast
serve holdfast /disk/lock || report failed restart
prove room holdfast /tmp/state unlock
stop
audit holdfast /disk/lock
