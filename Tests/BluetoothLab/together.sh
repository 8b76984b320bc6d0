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
  holdfast bench rounds --timeout 60 --rounds 100000 --state "/tmp/state$index" --connect "$(endpoint le "$index")" --json >"/tmp/prover$index" 2>&1 &
  provers="$provers $!"
done
# order: the connections in the order of their rounds.
order() { tail -n "+$first" /tmp/device.log | sed -nE 's/.*connection ([0-9]+): accepted([, ].*)?$/\1/p'; }
# One may connect seconds after the others, so all go on until each has had its rounds.
have_had() { [ "$(order | sort | uniq -c | awk -v rounds="$1" '$1 >= rounds' | wc -l)" -eq 3 ]; }
within 900 have_had 20
for prover in $provers; do
  kill "$prover"
  wait "$prover"
  report ended "$?"
done
report order "$(order | tr '\n' ' ')"
