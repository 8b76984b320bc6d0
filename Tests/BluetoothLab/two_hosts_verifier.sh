# The end that listens. It runs the radio, and the prover's guest uses one of its controllers.
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
# Reports the received data for each name that the host gives.
while hear && [ "$heard" != over ]; do received "$heard"; done
