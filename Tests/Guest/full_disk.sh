# The device's folder on a disk that fills up while it serves; the prover and the service have room.
mount /dev/vda /disk
export XDG_DATA_HOME=/tmp/data
meet holdfast /disk/lock /tmp --maximum-uses 20 || report failed enrolment
# Twice, because ext4 gives back what it had set aside for its own bookkeeping once all is written.
fill() { for pass in 1 2; do dd if=/dev/zero bs=4k >>/disk/ballast; sync; done; }
serve holdfast /disk/lock
prove room holdfast /tmp/state unlock

fill
for round in 1 2 3; do prove full holdfast /tmp/state unlock; done
rm -f /disk/ballast
prove room holdfast /tmp/state unlock

# It ends on a full disk, and is to start there; what it freed when it ended is filled too.
fill
prove full holdfast /tmp/state unlock
stop
fill
reporting start timeout 20 holdfast device serve --dir /disk/lock --listen unix:/tmp/lock.sock

rm -f /disk/ballast
serve holdfast /disk/lock || report failed restart
prove room holdfast /tmp/state unlock
stop
audit holdfast /disk/lock
