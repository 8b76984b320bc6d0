# A phone is revoked, and the lock learns it from another one, over each transport of Bluetooth.
. /scripts/served.sh
together 2
meet holdfast /tmp/lock /tmp >/tmp/met || report failed enrolment
serve_all
for kind in l2cap rfcomm le; do
  enrolled "stolen-$kind"
  proves "$kind-before" "stolen-$kind" "$kind" 1
  token=$(holdfast status --state "/tmp/stolen-$kind" --json 2>/dev/null | sed -nE 's/.*"token_id":"([0-9a-f]{32})".*/\1/p')
  holdfast service bulletin --dir /tmp/service --device /tmp/lock.json --revoke "$token" >/tmp/said 2>&1 || report failed "bulletin: $(cat /tmp/said)"
  holdfast sync --state /tmp/state --service /tmp/service >/tmp/said 2>&1 || report failed "sync: $(cat /tmp/said)"
  # Without news, the lock still accepts it.
  proves "$kind-unheard" "stolen-$kind" "$kind" 1
  proves "$kind-courier" state "$kind" 1 --courier 20000 --json
  proves "$kind-revoked" "stolen-$kind" "$kind" 1
done
