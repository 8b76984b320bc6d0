# One executable twice on an ext4 with fs-verity: /disk/verity has it enabled, /disk/plain has not.
mount /dev/vda /disk
cp /usr/bin/holdfast /disk/verity
cp /usr/bin/holdfast /disk/plain
fsverity enable /disk/verity
report kernel "$(fsverity measure /disk/verity | cut -d ' ' -f 1)"
reporting write sh -c 'echo >>/disk/verity'

# measured NAME PROGRAM [OPTION]: has the program measure itself, and reports the evidence.
export XDG_DATA_HOME=/tmp/data
measured() {
  "$2" measure --state /tmp/measured --out /tmp/evidence ${3:+"$3"} && report "measured-$1" "$(base64 -w 0 /tmp/evidence)"
  rm -rf /tmp/measured /tmp/evidence
}
measured verity /disk/verity
measured plain /disk/plain
measured initramfs /usr/bin/holdfast
measured verity-trees /disk/verity --tree-digests
measured plain-trees /disk/plain --tree-digests
mkdir /tmp/user && chown nobody /tmp/user
su -s /bin/sh nobody -c 'XDG_DATA_HOME=/tmp/user /disk/verity measure --state /tmp/user/state --out /tmp/user/evidence' &&
  report measured-user "$(base64 -w 0 /tmp/user/evidence)"

# A service approves the program that makes it, so one is made by the program with fs-verity.
cp -a /met/lock /met/lock.json /tmp
/disk/verity service init --dir /tmp/service &&
  /disk/verity service show --dir /tmp/service --json >/tmp/service.json &&
  /disk/verity device trust --dir /tmp/lock /tmp/service.json &&
  /disk/verity service device add --dir /tmp/service /tmp/lock.json &&
  /disk/verity enroll --device /tmp/lock.json --service /tmp/service --state /tmp/state || report failed enrolment
serve /disk/verity /tmp/lock
prove proved /disk/verity /tmp/state unlock
prove copied /disk/plain /tmp/state unlock
prove again /disk/verity /tmp/state lock
reporting explained /disk/plain explain --state /tmp/state --json
stop
audit /disk/verity /tmp/lock
