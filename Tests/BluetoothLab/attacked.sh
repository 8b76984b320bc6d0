# An adversary at a device, over each transport of Bluetooth.
. /scripts/served.sh
together 2
meet holdfast /tmp/lock /tmp >/tmp/met || report failed enrolment
serve_all
for kind in l2cap rfcomm le; do
  trying "$kind" timeout 900 holdfast attack "$(endpoint "$kind" 1)" --state /tmp/state --service /tmp/service --skip late-answer
done

# An impostor in the device's place, and the prover comes to it.
kill "$server"
wait "$server"
alone 1
deceptions='forged-seal unknown-token flood end'
for kind in l2cap rfcomm le; do
  # One for each: the words of the one before might still be in the file.
  log=/tmp/impostor-$kind
  timeout 900 holdfast attack --listen "$(place "$kind")" --timeout 60 --state /tmp/state --connections 4 $(printf -- '--only %s ' $deceptions) >"$log" 2>&1 &
  impostor=$!
  patiently grep -q 'listening at' "$log"
  for deception in $deceptions; do
    # After the end of the connection, the prover looks for an impostor that has gone.
    case $deception in end) patience=10 ;; *) patience=100 ;; esac
    proves "$kind-$deception" state "$kind" 1
  done
  wait "$impostor"
  report "$kind-impostor" "$?" "$(tail -n 1 "$log")"
done
