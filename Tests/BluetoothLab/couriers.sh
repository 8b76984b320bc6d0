# A phone is revoked, and the lock learns it from another one, over each transport of Bluetooth, and its log goes home the same way.
. /scripts/served.sh
together 2
meet holdfast /tmp/lock /tmp >/tmp/met || report failed enrolment
home=$(holdfast service show --dir /tmp/service --json 2>/dev/null | sed -nE 's/.*"kid":"([0-9a-f]{16})".*/\1/p')
sed -i "s/\"codes\"/\"audit\": {\"home\": \"$home\"}, \"codes\"/" /tmp/lock/policy.json
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
  # The page of this visit goes home, and its receipt comes along with the next one, which has no bulletin to deliver.
  trying "$kind-handed-in" holdfast sync --state /tmp/state --service /tmp/service --json
  proves "$kind-receipt" state "$kind" 1 --courier 20000 --json
  trying "$kind-at-home" holdfast service audit --dir /tmp/service --device /tmp/lock.json --status accepted --last 1 --json
  trying "$kind-acknowledged" holdfast device show --dir /tmp/lock --all --json
done
