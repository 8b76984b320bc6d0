# The end that connects, to the address that the host gives.
. /scripts/bluetooth.sh
attach
adapter 0 && agent 0
hear
peer=$heard
exchange l2ping l2ping -c 2 -d 0 "$peer"
exchange l2cap l2test -s -P 4097 -b 600 -N 5 -g 500 "$peer"
exchange rfcomm rctest -s -P 5 -b 100 -N 5 "$peer"
# A request during the end of a link is refused.
alone 0
exchange rfcomm-secured rctest -s -P 6 -b 100 -N 5 -A -E "$peer"

# pinging NAME COUNT SECONDS: round trips, normal, delayed, lost and cut, when the host says so. Each lost one takes its four seconds, and
# without a controller, connecting never ends.
pinging() {
  timeout "$3" l2ping -c "$2" -d 0 -t 4 "$peer" >/tmp/pinged 2>&1
  report "$1" "$(sed -nE 's/.* time ([0-9.]+)ms/\1/p' /tmp/pinged | tr '\n' ' ')"
}
pinging quiet 20 120
hear && pinging late 20 120
hear && pinging lost 5 120
hear

# A closed LE channel drops data that still waits for its peer's credits: -g is the time before the close.
exchange le l2test -s -V le_public -P 128 -b 600 -N 5 -g 500 "$peer"
exchange le-secured l2test -s -V le_public -P 130 -b 600 -N 5 -g 500 -E "$peer"
hear
pinging cut 1 5
