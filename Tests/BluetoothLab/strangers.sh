# Controllers that cannot advertise while they have a link: a stranger without keys holds the only one.
# Adapters: 0 the device's, 1 the honest prover's, 2 the stranger's.
. /scripts/served.sh
export ONE_LINK=1
together 3
meet holdfast /tmp/lock /tmp >/tmp/met || report failed enrolment
enrolled other
serve_all

btmon -i 0 -w /tmp/air >/tmp/recorded &
recorder=$!
patiently [ -s /tmp/air ]

# A message whose token is a reference that the device does not know.
unknown=8502582483501111111111111111111111111111111100502222222222222222222222222222222222f6f640
talk=$(for number in $(seq 200); do printf 'read send:%s read ' "$unknown"; done)
ended() { grep -c 'was ended, because it kept others out' /tmp/device.log; }
linked() { hcitool -i hci2 con | grep -q LE; }
unlinked_stranger() { ! linked; }

# stranger NAME COMMAND...: the stranger holds a link, and an honest prover arrives; reports how long the link was held.
stranger() {
  name=$1 before=$(ended)
  shift
  alone 1
  "$@" >"/tmp/$name" 2>&1 &
  stranger=$!
  patiently linked || report failed "$name: no link"
  begin=$(uptime_seconds)
  (proves "$name-honest" state le 1) &
  honest=$!
  within 60 unlinked_stranger
  report "$name-held" "$(echo "$(uptime_seconds) $begin" | awk '{ print $1 - $2 }')"
  wait "$honest"
  kill "$stranger" 2>/dev/null
  report "$name-said" "$(($(ended) - before))"
}
stranger without-channel foreign link 2 hold
stranger silent foreign le 2 read hold
stranger talking foreign le 2 $talk

# Accepted rounds continue for longer than a stranger may stay. The device may log the end of the link before them only when they have begun,
# and rounds whose link is ended fail, so that ends count from the first accepted ones on.
alone 1
accepted=$(answers accepted)
(holdfast bench rounds --state /tmp/state --connect "$(endpoint le 1)" --rounds 60 --timeout 100 >/tmp/rounds 2>&1; report rounds "$?") &
rounds=$!
patiently answered accepted "$((accepted + 7))"
before=$(ended)
(trying next timeout 900 holdfast prove --state /tmp/other --connect "$(endpoint le 2)" --command status --timeout 800) &
next=$!
wait "$rounds"
report rounds-ended "$(($(ended) - before))"
wait "$next"

alone 1
alone 2
# The last link's end belongs to the record, and so does what the device does then.
sleep 2
kill "$recorder"
wait "$recorder"
report air "$(base64 -w 0 /tmp/air)"
report said "$(grep -c 'can connect by Low Energy' /tmp/device.log)"
