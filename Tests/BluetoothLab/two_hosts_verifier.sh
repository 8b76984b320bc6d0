# The end that listens. Its radio is the air, and the prover's host has a controller of it.
. /scripts/bluetooth.sh
radio 1
lend
adapter 0 && agent 0
listening l2cap l2test -d -P 4097 -I 672
listening rfcomm rctest -d -P 5
listening rfcomm-secured rctest -d -P 6 -A -E
btmgmt -i 0 advertising on >/dev/null
listening le l2test -d -V le_public -P 128 -I 672
listening le-secured l2test -d -V le_public -P 130 -I 672 -E
report listening
# For each name that the host tells: what was received.
while hear && [ "$heard" != over ]; do received "$heard"; done
