# Hostile peers, while an honest prover's rounds continue; then seven honest provers at once.
# Adapters: 0 the device's, 1 the honest prover's, 2 and 3 of hostile peers over BR/EDR and LE, 4 and 5 of slow peers.
. /scripts/served.sh
together 8
meet holdfast /tmp/lock /tmp >/tmp/met || report failed enrolment
enrolled beside state1 state2 state3 state4 state5 state6 state7
serve_all

# Descriptors and threads. A round opens the policy for a moment, so a single count is unreliable while rounds continue.
figures() { echo "$(ls "/proc/$server/fd" 2>/dev/null | wc -l) $(ls "/proc/$server/task" | wc -l)"; }
least() { for look in $(seq 20); do figures; done | sort -n | head -n 1; }
settled() { seen=$(figures) && [ "$seen" = "$settled" ]; }
# A token that the device does not remember is sent in full, which is not a denial.
denied() { grep "$1" /tmp/device.log | grep -vcE ': (accepted|tokenUnknown)([, ]|$)'; }
lines() { [ "$(wc -l <"$1")" -ge "$2" ]; }

# meeting NAME COMMAND...: reports the command's exit status and output on one line, and waits for the honest prover's next round.
meeting() {
  name=$1 rounds=$(answers accepted)
  shift
  ("$@") >"/tmp/$name" 2>&1
  report "$name" "$? $(tr '\n' ' ' <"/tmp/$name")"
  patiently answered accepted $((rounds + 1))
}

# begun NAME LINES COMMAND...: starts the command, and waits until it has printed LINES lines; $begun is its process.
begun() {
  name=$1 lines=$2
  shift 2
  "$@" >"/tmp/$name" 2>&1 &
  begun=$!
  patiently lines "/tmp/$name" "$lines"
}

# A peer that does not end by itself is killed silently.
vanish() {
  kill "$1" 2>/dev/null
  wait "$1" 2>/dev/null
}

# Rounds without end would take all the time of the processor: this prover gets a twentieth, which is some rounds a second.
mkdir /tmp/groups
holdfast bench rounds --state /tmp/beside --connect "$(endpoint l2cap 1)" --rounds 1000000 --timeout 60 >/tmp/honest 2>&1 &
honest=$!
patiently answered accepted 1
mount -t cgroup2 none /tmp/groups
echo +cpu >/tmp/groups/cgroup.subtree_control
mkdir /tmp/groups/honest
# Microseconds of each tenth of a second.
echo 5000 100000 >/tmp/groups/honest/cpu.max
echo "$honest" >/tmp/groups/honest/cgroup.procs
settled=$(least)
report settled "$settled"

# hostile KIND FAST SLOW FRAME: tries every attack of a peer on a transport, from two adapters. FRAME is the beginning of a message of four bytes.
hostile() {
  kind=$1 fast=$2 slow=$3 frame=$4
  begun half-open 1 foreign "$kind" "$slow" read hold
  silent=$begun
  meeting "$kind-garbage" foreign "$kind" "$fast" read "send:${frame}deadbeef" until-closed
  meeting "$kind-map" foreign "$kind" "$fast" read "send:${frame}a1020340" until-closed
  "hostile_$kind"
  meeting "$kind-gone" foreign "$kind" "$fast" read
  refused=$(answers malformed)
  (foreign "$kind" "$fast" "send:${frame}deadbeef" hold) &
  deaf=$!
  patiently answered malformed $((refused + 1))
  vanish "$deaf"
  "flood_$kind"
  vanish "$silent"
  patiently settled
  report "$kind-settled" "$seen"
}

# The last is the longest packet of that transport that Linux takes.
oversized() {
  for length in 4097 5000 "$1"; do meeting "$kind-length-$length" foreign "$kind" "$fast" read "fill:$length" until-closed; done
}

hostile_l2cap() {
  meeting l2cap-length-0 foreign l2cap "$fast" read fill:0 until-closed
  oversized 65531
}

# An LE channel does not carry empty packets.
hostile_le() { oversized 65535; }

hostile_rfcomm() {
  begun rfcomm-half 1 foreign rfcomm 5 read send:0064 fill:50 until-closed
  half=$begun
  for length in 0000 1001 ffff; do meeting "rfcomm-length-$length" foreign rfcomm "$fast" read "send:$length" until-closed; done
  meeting rfcomm-cut foreign rfcomm "$fast" read send:0064 fill:50
}

# All places of the device: two of the 64 are taken.
flood_l2cap() {
  begun flood 50 foreign l2cap "$fast" peers:50 read hold
  flood=$begun
  begun more 12 foreign l2cap "$slow" peers:12 read hold
  report l2cap-flood "$(cat /tmp/flood /tmp/more | wc -l)"
  proves l2cap-honest state l2cap 1
  vanish "$begun"
  vanish "$flood"
}

# A channel has one connection between two hosts at a time.
flood_rfcomm() {
  for number in $(seq 20); do (foreign rfcomm "$fast" read) || report failed "flood $number"; done >/tmp/flood
  report rfcomm-flood "$(wc -l </tmp/flood)"
  proves rfcomm-honest state rfcomm 1
  wait "$half"
  report rfcomm-half "$? $(tr '\n' ' ' </tmp/rfcomm-half)"
}

# While it has a link over LE, the device's host does not advertise, so another prover over LE must wait for its end.
flood_le() {
  begun flood 50 foreign le "$fast" peers:50 read hold
  report le-flood "$(wc -l </tmp/flood)"
  vanish "$begun"
  vanish "$silent"
  alone "$fast"
  proves le-honest state le 1
}

hostile l2cap 2 4 ""
hostile rfcomm 2 4 0004
hostile le 3 3 ""
kill "$honest"
wait "$honest"
report honest "$? $(tr '\n' ' ' </tmp/honest)"
report rounds "$(grep -c 'connection 1: accepted' /tmp/device.log) $(denied 'connection 1: ')"
alone 1

# Seven provers at once. An emulated controller pairs with one peer at a time, so each begins after the one before has had a round, and
# that one leaves the processor to those that are still to begin. Then all are equal, and go on until each has had 50 rounds with the
# six others.
together_over() {
  kind=$1 provers=
  kill "$server" && wait "$server"
  serve_all
  for index in 1 2 3 4 5 6 7; do
    holdfast bench rounds --timeout 60 --rounds 1000000 --state "/tmp/state$index" --connect "$(endpoint "$kind" "$index")" --json >"/tmp/prover$index" 2>&1 &
    prover=$!
    provers="$provers $prover"
    patiently answered_to "$index"
    renice -n 19 -p "$prover"
  done
  renice -n -19 -p $provers
  first=$(($(wc -l </tmp/device.log) + 1))
  within 900 have_had 50
  for prover in $provers; do
    kill "$prover"
    wait "$prover"
    report "$kind-status" "$?"
  done
  report "$kind-order" "$(order | tr -d '\n')"
  report "$kind-denied" "$(denied 'connection [0-9]: ')"
}
# order: the connections in the order of their rounds, from the moment at which there were seven.
order() { tail -n "+$first" /tmp/device.log | sed -nE 's/.*connection ([0-9]): accepted([, ].*)?$/\1/p'; }
# have_had COUNT: whether each of the seven has had so many rounds.
have_had() { order | awk -v rounds="$1" '++had[$1] == rounds { count += 1 } END { exit count != 7 }'; }
answered_to() { grep -q "connection $1: accepted" /tmp/device.log; }
together_over l2cap
together_over rfcomm
