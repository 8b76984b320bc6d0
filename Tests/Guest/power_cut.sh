# A device on one disk and its prover on another; rounds until the token is used up, or until the host cuts the power.
# $1: the maximum number of uses of the token.
mount /dev/vda /disk
mkdir -p /phone && mount /dev/vdb /phone
export XDG_DATA_HOME=/phone/data
if [ ! -e /phone/met ]; then
  meet holdfast /disk/lock /phone --maximum-uses "$1" || report failed enrolment
  touch /phone/met
  sync
fi
audit holdfast /disk/lock
serve holdfast /disk/lock || report failed start
status=0
while [ "$status" -eq 0 ]; do prove round holdfast /phone/state unlock; done
stop
audit holdfast /disk/lock
