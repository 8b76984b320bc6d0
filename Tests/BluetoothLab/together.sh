# Controllers that advertise while they have links: three provers over Low Energy at the same time.
. /scripts/served.sh
together 4
meet holdfast /tmp/lock /tmp >/tmp/met || report failed enrolment
enrolled state1 state2 state3
serve_all

# An emulated controller pairs with one peer at a time, so each prover pairs beforehand.
for index in 1 2 3; do proves "paired" "state$index" le "$index"; done
first=$(($(wc -l </tmp/device.log) + 1)) provers=
for index in 1 2 3; do
  holdfast bench rounds --timeout 60 --rounds 200 --state "/tmp/state$index" --connect "$(endpoint le "$index")" --json >"/tmp/prover$index" 2>&1 &
  provers="$provers $!"
done
for prover in $provers; do
  wait "$prover"
  report status "$?"
done
# The connections in the order of their rounds.
report order "$(tail -n "+$first" /tmp/device.log | sed -nE 's/.*connection ([0-9]+): accepted([, ].*)?$/\1/p' | tr '\n' ' ')"
